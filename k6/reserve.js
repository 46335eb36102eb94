// What the scripts of the reserve scenarios share: `-e LINES=2` or `-e LINES=50`.
import { BOOKS, lines, newOrderId } from './lines.js';
import { whole } from './options.js';

const LINES = whole('LINES', 2, BOOKS);
const RESERVED = lines(LINES);

export const SCENARIO = `reserve-${LINES}`;

/** A reservation for a new order, so that the server does the work each time. */
export function reservation() {
  return { orderId: newOrderId(), lines: RESERVED };
}

/**
 * @param {any} reserved a reservation as JSON
 * @param {string} held the state that says that units are held
 */
export function isHeld(reserved, held) {
  return reserved.state === held && /^rsv_/.test(reserved.reservationId) && reserved.expiresAt !== null;
}

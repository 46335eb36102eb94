// What the scripts of the reserve scenarios share: `-e LINES=2` or `-e LINES=50`.
import { LINES } from './lines.js';

export const SCENARIO = `reserve-${LINES}`;

/**
 * @param {any} reserved a reservation as JSON
 * @param {string} held the state that says that units are held
 */
export function isHeld(reserved, held) {
  return reserved.state === held && /^rsv_/.test(reserved.reservationId) && reserved.expiresAt !== null;
}

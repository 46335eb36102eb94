// What the scripts of the order scenarios share: `-e VIEW=status`, `full` or `history`.
import { seededOrder } from './lines.js';

const VIEWS = {
  status: { scenario: 'order-200b', document: 'GetOrderStatus', view: 'ORDER_VIEW_STATUS' },
  full: { scenario: 'order-2k', document: 'GetOrderFull', view: 'ORDER_VIEW_FULL' },
  history: { scenario: 'order-64k', document: 'GetOrderHistory', view: 'ORDER_VIEW_HISTORY' },
};

/** How much of the order is asked for. */
export const VIEW = /** @type {keyof typeof VIEWS} */ (__ENV.VIEW || 'full');
if (!VIEWS[VIEW]) throw new Error(`VIEW must be status, full or history, was ${__ENV.VIEW}`);

/** The scenario, the GraphQL document and the enum of gRPC that go with it. */
export const ORDER = Object.assign({ id: seededOrder(1) }, VIEWS[VIEW]);

/** The seeded order has eight lines and has shipped. */
const LINES = 8;

/**
 * @param {any} order as JSON
 * @param {string} shipped the state that says so
 */
export function isWhole(order, shipped) {
  if (order.orderId !== ORDER.id || order.state !== shipped || order.lineCount !== LINES) return false;
  if (VIEW === 'status') return true;
  if (order.lines.length !== LINES || !order.shipTo.city) return false;
  if (VIEW === 'full') return true;
  const last = order.history[order.history.length - 1];
  return last.kind === 'SHIPPED' && last.sequence === order.history.length;
}

// Reserves stock for a new order by gRPC.
import { isOk, method } from './grpc.js';
import { operation } from './operation.js';
import { SCENARIO, isHeld, reservation } from './reserve.js';
import { summary } from './summary.js';
import { INVENTORY } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(SCENARIO, 'grpc');

const reserve = method(
  INVENTORY,
  'bookstore/inventory/v1/inventory.proto',
  'bookstore.inventory.v1.InventoryService/ReserveStock'
);

export default operation(() => reserve(reservation()), {
  'status is OK': isOk,
  'units are held': (reply) => isHeld(reply.message, 'RESERVATION_STATE_HELD'),
});

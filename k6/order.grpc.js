// One order by gRPC.
import { isOk, method } from './grpc.js';
import { operation } from './operation.js';
import { ORDER, isWhole } from './order.js';
import { summary } from './summary.js';
import { ORDERING } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(ORDER.scenario, 'grpc');

const getOrder = method(
  ORDERING,
  'bookstore/ordering/v1/ordering.proto',
  'bookstore.ordering.v1.OrderingService/GetOrder'
);

export default operation(() => getOrder({ orderId: ORDER.id, view: ORDER.view }), {
  'status is OK': isOk,
  'the order is whole': (reply) => isWhole(reply.message.order, 'ORDER_STATE_SHIPPED'),
});

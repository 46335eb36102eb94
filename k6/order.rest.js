// One order by REST.
import http from 'k6/http';
import { operation } from './operation.js';
import { ORDER, VIEW, isWhole } from './order.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(ORDER.scenario, 'rest');

const URL = `${REST}/api/v1/orders/${ORDER.id}?view=${VIEW}`;

export default operation(() => decoded(http.get(URL)), {
  'status is 200': (reply) => reply.status === 200,
  'the order is whole': (reply) => isWhole(reply.body, 'SHIPPED'),
});

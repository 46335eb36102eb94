// Reserves stock for a new order by REST.
import http from 'k6/http';
import { operation } from './operation.js';
import { SCENARIO, isHeld, reservation } from './reserve.js';
import { JSON_BODY, decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(SCENARIO, 'rest');

export default operation(
  () => decoded(http.post(`${REST}/api/v1/reservations`, JSON.stringify(reservation()), JSON_BODY)),
  {
    'status is 201': (reply) => reply.status === 201,
    'units are held': (reply) => isHeld(reply.body, 'HELD'),
  }
);

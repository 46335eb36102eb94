// Reserves stock for a new order by GraphQL, the document's text in every request.
import { document, send } from './graphql.js';
import { operation } from './operation.js';
import { SCENARIO, isHeld, reservation } from './reserve.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(SCENARIO, 'graphql');

const DOCUMENT = document('ReserveStock');

export default operation(() => send(DOCUMENT, { input: reservation() }), {
  'status is 200 without errors': (reply) => reply.status === 200 && !reply.body.errors,
  'units are held': (reply) => isHeld(reply.body.data.reserveStock, 'HELD'),
});

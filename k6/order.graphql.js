// One order by GraphQL, the document's text in every request.
import { document, send } from './graphql.js';
import { operation } from './operation.js';
import { ORDER, isWhole } from './order.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(ORDER.scenario, 'graphql');

const DOCUMENT = document(ORDER.document);

export default operation(() => send(DOCUMENT, { id: ORDER.id }), {
  'status is 200 without errors': (reply) => reply.status === 200 && !reply.body.errors,
  'the order is whole': (reply) => isWhole(reply.body.data.order, 'SHIPPED'),
});

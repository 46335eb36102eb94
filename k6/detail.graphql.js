// The book-detail screen by GraphQL, the document's text in every request.
import { isNestedDetail } from './detail.js';
import { document, send } from './graphql.js';
import { BOOK } from './lines.js';
import { operation } from './operation.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'graphql');

const DOCUMENT = document('BookDetail');

export default operation(() => send(DOCUMENT, { id: BOOK }), {
  'status is 200 without errors': (reply) => reply.status === 200 && !reply.body.errors,
  'the screen is whole': (reply) => isNestedDetail(reply.body.data.book),
});

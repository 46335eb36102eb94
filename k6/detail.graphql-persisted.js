// The book-detail screen by GraphQL with GET, the document named by its hash, as caches like it.
import { isNestedDetail } from './detail.js';
import { document, getPersisted, persisted } from './graphql.js';
import { BOOK } from './lines.js';
import { operation } from './operation.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'graphql-persisted');

const DOCUMENT = persisted(document('BookDetail'));

export default operation(() => getPersisted(DOCUMENT, { id: BOOK }), {
  'status is 200 without errors': (reply) => reply.status === 200 && !reply.body.errors,
  'the screen is whole': (reply) => isNestedDetail(reply.body.data.book),
});

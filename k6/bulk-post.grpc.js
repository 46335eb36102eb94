// A thousand new books in one upload by gRPC: as one message, or with `-e BATCH=1` to 1000 as a stream, so many of them
// in each message. They are checked, not added: a store would fill up.
import { BATCH, COUNT, newBooks, wereRight } from './bulk.js';
import { streaming } from './grpc.js';
import { operationLater } from './operation.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';

const STREAM = Boolean(__ENV.BATCH);
export const handleSummary = summary('bulk-post', STREAM ? `grpc-stream-${BATCH}` : 'grpc');

const upload = streaming(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  `bookstore.catalog.v1.CatalogService/${STREAM ? 'ImportBooks' : 'BatchCreateBooks'}`
);

export default operationLater(() => upload(messages()), {
  'nothing went wrong': (reply) => reply.error === undefined,
  'all books are right': (reply) => wereRight(reply.messages[0], COUNT),
});

function messages() {
  const books = newBooks();
  if (!STREAM) return [{ books, validateOnly: true }];
  const all = [];
  for (let i = 0; i < COUNT; i += BATCH) all.push({ books: books.slice(i, i + BATCH), validateOnly: true });
  return all;
}

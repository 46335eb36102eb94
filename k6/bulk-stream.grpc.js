// A thousand books as a stream by gRPC, `-e BATCH=1`, 10 or 100 of them in each message.
import { BATCH, COUNT, areAll } from './bulk.js';
import { streaming } from './grpc.js';
import { operationLater } from './operation.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('bulk-stream', `grpc-${BATCH}`);

const streamBooks = streaming(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  'bookstore.catalog.v1.CatalogService/StreamBooks'
);

export default operationLater(() => streamBooks([{ limit: COUNT, batchSize: BATCH }]), {
  'nothing went wrong': (reply) => reply.error === undefined,
  'all books came': (reply) => areAll(booksOf(reply.messages)),
});

/** @param {any[]} messages */
function booksOf(messages) {
  return BATCH === 1
    ? messages.map((message) => message.book)
    : messages.reduce((books, message) => books.concat(message.books), []);
}

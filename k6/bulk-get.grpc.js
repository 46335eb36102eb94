// A thousand books in one reply by gRPC.
import { COUNT, areAll } from './bulk.js';
import { isOk, method } from './grpc.js';
import { operation } from './operation.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('bulk-get', 'grpc');

const listBooks = method(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  'bookstore.catalog.v1.CatalogService/ListBooks'
);

export default operation(() => listBooks({ pageSize: COUNT }), {
  'status is OK': isOk,
  'all books came': (reply) => areAll(reply.message.books),
});

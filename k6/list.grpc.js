// All books by gRPC.
import { isOk, method } from './grpc.js';
import { BOOKS } from './lines.js';
import { SCENARIO, areAll, inARow } from './list.js';
import { operation } from './operation.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(SCENARIO, 'grpc');

const listBooks = method(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  'bookstore.catalog.v1.CatalogService/ListBooks'
);

export default operation(() => inARow(() => listBooks({ pageSize: BOOKS })), {
  'status is OK': (replies) => replies.every(isOk),
  'all books came': (replies) => replies.every((reply) => areAll(reply.message.books)),
});

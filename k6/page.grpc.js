// A page of books with all that belongs to them by gRPC.
import { isOk, method } from './grpc.js';
import { operation } from './operation.js';
import { PAGE, REVIEWS, isWhole } from './page.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('page', 'grpc');

const listDetails = method(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  'bookstore.catalog.v1.CatalogService/ListBookDetails'
);

export default operation(() => listDetails({ pageSize: PAGE, reviewCount: REVIEWS }), {
  'status is OK': isOk,
  'the page is whole': (reply) => isWhole(reply.message.details),
});

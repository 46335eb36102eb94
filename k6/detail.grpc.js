// The book-detail screen by gRPC.
import { isDetail } from './detail.js';
import { isOk, method } from './grpc.js';
import { BOOK, REVIEWS } from './lines.js';
import { operation } from './operation.js';
import { summary } from './summary.js';
import { CATALOG } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'grpc');

const getBookDetail = method(
  CATALOG,
  'bookstore/catalog/v1/catalog.proto',
  'bookstore.catalog.v1.CatalogService/GetBookDetail'
);

export default operation(() => getBookDetail({ bookId: BOOK, reviewCount: REVIEWS }), {
  'status is OK': isOk,
  'the screen is whole': ({ message }) =>
    isDetail(message.book, message.author, message.inStock, message.reviews) && !message.stockUnavailable,
});

// The book-detail screen by gRPC-Web, as a browser asks for it.
import http from 'k6/http';
import { framed, read, unframed, written } from './grpcweb.js';
import { BOOK, REVIEWS } from './lines.js';
import { operation } from './operation.js';
import { summary } from './summary.js';
import { GRPC_WEB } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'grpc-web');

const URL = `${GRPC_WEB}/bookstore.catalog.v1.CatalogService/GetBookDetail`;
const PARAMS = {
  headers: { 'Content-Type': 'application/grpc-web+proto', 'X-Grpc-Web': '1' },
  responseType: /** @type {const} */ ('binary'),
};

export default operation(
  () => {
    // GetBookDetailRequest: book_id is field 1, review_count 2.
    const reply = unframed(http.post(URL, framed(written({ 1: BOOK, 2: REVIEWS })), PARAMS));
    return Object.assign(reply, { detail: reply.messages.map(read) });
  },
  {
    'status is 200': (reply) => reply.status === 200,
    'grpc-status is 0': (reply) => reply.grpcStatus === '0',
    // GetBookDetailResponse: book is field 1 and its id 1, author 2, in_stock 3, reviews 4.
    'the screen is whole': ({ detail }) =>
      detail.length === 1 &&
      read(detail[0][1][0])[1][0] === BOOK &&
      detail[0][2].length === 1 &&
      detail[0][3].length === 1 &&
      detail[0][4].length === REVIEWS,
  }
);

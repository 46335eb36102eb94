// The book-detail screen as one resource of REST.
import http from 'k6/http';
import { isDetail } from './detail.js';
import { BOOK, REVIEWS } from './lines.js';
import { operation } from './operation.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary('detail', 'rest-bff');

const URL = `${REST}/api/v1/screens/book-detail/${BOOK}?reviews=${REVIEWS}`;

export default operation(() => decoded(http.get(URL)), {
  'status is 200': (reply) => reply.status === 200,
  'the screen is whole': ({ body }) => isDetail(body.book, body.author, body.stock.inStock, body.reviews),
});

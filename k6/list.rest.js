// All books by REST.
import http from 'k6/http';
import { BOOKS } from './lines.js';
import { SCENARIO, areAll, inARow } from './list.js';
import { operation } from './operation.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { teardown } from './operation.js';
export const handleSummary = summary(SCENARIO, 'rest');

const URL = `${REST}/api/v1/books?page_size=${BOOKS}`;

export default operation(() => inARow(() => decoded(http.get(URL))), {
  'status is 200': (replies) => replies.every((reply) => reply.status === 200),
  'all books came': (replies) => replies.every((reply) => areAll(reply.body.books)),
});

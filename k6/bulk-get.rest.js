// A thousand books in one reply by REST.
import http from 'k6/http';
import { COUNT, areAll } from './bulk.js';
import { operation } from './operation.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('bulk-get', 'rest');

const URL = `${REST}/api/v1/books?page_size=${COUNT}`;

export default operation(() => decoded(http.get(URL)), {
  'status is 200': (reply) => reply.status === 200,
  'all books came': (reply) => areAll(reply.body.books),
});

// A thousand books as a stream by REST: a line for each.
import http from 'k6/http';
import { COUNT, areAll } from './bulk.js';
import { operation } from './operation.js';
import { decodedLines } from './rest.js';
import { summary } from './summary.js';
import { REST } from './targets.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('bulk-stream', 'rest-ndjson');

const URL = `${REST}/api/v1/books/export?limit=${COUNT}`;

export default operation(() => decodedLines(http.get(URL)), {
  'status is 200': (reply) => reply.status === 200,
  'all books came': (reply) => areAll(reply.body),
});

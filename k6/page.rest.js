// A page of books with all that belongs to them by REST.
import http from 'k6/http';
import { operation } from './operation.js';
import { URL, isWhole } from './page.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('page', 'rest');

export default operation(() => decoded(http.get(URL)), {
  'status is 200': (reply) => reply.status === 200,
  'the page is whole': (reply) => isWhole(reply.body.details),
});

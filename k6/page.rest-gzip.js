// A page of books with all that belongs to them by REST, zipped. k6 unzips what it gets, and the operation lasts until
// then.
import http from 'k6/http';
import { operation } from './operation.js';
import { URL, isWhole } from './page.js';
import { decoded } from './rest.js';
import { summary } from './summary.js';

export { options } from './options.js';
export { setup } from './bulk.js';
export { teardown } from './operation.js';
export const handleSummary = summary('page', 'rest-gzip');

const PARAMS = { headers: { 'Accept-Encoding': 'gzip' } };

export default operation(
  () => {
    const response = http.get(URL, PARAMS);
    return Object.assign(decoded(response), { encoding: response.headers['Content-Encoding'] });
  },
  {
    'status is 200': (reply) => reply.status === 200,
    'it was zipped': (reply) => reply.encoding === 'gzip',
    'the page is whole': (reply) => isWhole(reply.body.details),
  }
);

// Where to call. The defaults fit `bookstore up`; `-e TARGET=compose` fits the containers and the services run apart;
// `-e HTTP=` and `-e GRPC=` name another `bookstore up`; and each address can be set by its own name.

const APART = __ENV.TARGET === 'compose';
if (__ENV.TARGET && !APART && __ENV.TARGET !== 'up') throw new Error(`TARGET must be up or compose, was ${__ENV.TARGET}`);

const HTTP = __ENV.HTTP || 'http://127.0.0.1:5300';
const GRPC = __ENV.GRPC || '127.0.0.1:5301';

/** Which shape of the suite is called. */
export const TARGET = APART ? 'compose' : 'up';

/** Before `/api/v1/...`. */
export const REST = __ENV.REST || (APART ? 'http://127.0.0.1:5300' : HTTP);

/** Before `/graphql`. */
export const GRAPHQL = __ENV.GRAPHQL || (APART ? 'http://127.0.0.1:5310' : HTTP);

/** Before `/bookstore.catalog.v1...`. */
export const GRPC_WEB = __ENV.GRPC_WEB || (APART ? 'http://127.0.0.1:5311' : HTTP);

/** gRPC addresses, as host:port. */
export const CATALOG = __ENV.CATALOG || (APART ? '127.0.0.1:5311' : GRPC);
export const INVENTORY = __ENV.INVENTORY || (APART ? '127.0.0.1:5312' : GRPC);
export const ORDERING = __ENV.ORDERING || (APART ? '127.0.0.1:5313' : GRPC);

/** Where each server process tells its CPU seconds, separated by commas. */
export const METRICS = (__ENV.METRICS || (APART ? [5391, 5392, 5393, 5394, 5395] : [5390]).map(metricsAt).join(',')).split(',');

/** @param {number} port */
function metricsAt(port) {
  return `http://127.0.0.1:${port}/metrics`;
}

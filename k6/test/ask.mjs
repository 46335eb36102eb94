// Calls into the thread that does a virtual user's networking, and waits: scripts of k6 are synchronous, Node is not.
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import { state } from './state.mjs';

let network;

/** Asks for something and returns what came of it, or throws it. */
export function ask(what, argument) {
  network ??= start();
  const answers = Atomics.load(network.answered, 0);
  network.port.postMessage({ what, argument });
  // Once isn't enough: the last answer's notification can come late.
  while (Atomics.load(network.answered, 0) === answers) Atomics.wait(network.answered, 0, answers);
  const { result, error, bytes } = receiveMessageOnPort(network.port).message;
  network.bytes = bytes;
  if (error !== undefined) throw new Error(error);
  return result;
}

function start() {
  const { port1: port, port2: theirs } = new MessageChannel();
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('network.mjs', import.meta.url), {
    workerData: { port: theirs, answered },
    transferList: [theirs],
  });
  worker.unref();
  port.unref();
  let taken = { sent: 0, received: 0 };
  state.takeBytes = () => {
    const { sent, received } = network.bytes;
    const since = { sent: sent - taken.sent, received: received - taken.received };
    taken = network.bytes;
    return since;
  };
  return { port, answered, bytes: taken };
}

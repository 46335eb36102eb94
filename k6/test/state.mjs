// What the modules know of the virtual user that they run in.

export const state = {
  id: 0,
  iteration: 0,
  inInit: true,
  scenario: undefined,
  /** Tags of the user, written on every sample. */
  tags: {},
  /** Metrics that the script declares: name to type. */
  metrics: new Map(),
  samples: [],
  /** Milliseconds of `performance` at which the run began, near enough. */
  began: performance.now(),
  takeBytes: () => ({ sent: 0, received: 0 }),
};

/** Notes a value of a metric. */
export function sample(metric, value, tags) {
  state.samples.push({ metric, value: Number(value), tags: { ...state.tags, ...tags } });
}

/** Throws where k6 allows something only after or only in the init context. */
export function outsideInit(what) {
  if (state.inInit) throw new Error(`${what} is not supported in the init context`);
}

export function insideInit(what) {
  if (!state.inInit) throw new Error(`${what} is only supported in the init context`);
}

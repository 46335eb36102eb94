// Sums up samples and judges thresholds, as k6 does it.

const BUILT_IN = {
  checks: 'rate',
  data_received: 'counter',
  data_sent: 'counter',
  grpc_req_duration: 'trend',
  http_req_duration: 'trend',
  http_req_failed: 'rate',
  http_reqs: 'counter',
  iteration_duration: 'trend',
  iterations: 'counter',
};

const AGGREGATIONS = {
  counter: ['count', 'rate'],
  gauge: ['value'],
  rate: ['rate'],
  trend: ['avg', 'min', 'max', 'med', 'p'],
};

const COMPARISONS = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
};

export class Metrics {
  #types;
  #options;
  #thresholds;
  #values = new Map();
  #checks = new Map();

  constructor({ scenarios, thresholds = {}, summaryTrendStats, ...unknown }, declared) {
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw invalid(`the stand-in has no option ${name}`);
    this.#types = new Map([...Object.entries(BUILT_IN), ...declared]);
    this.#options = { scenarios, summaryTrendStats };
    this.#thresholds = Object.entries(thresholds).flatMap(([metric, rules]) =>
      rules.map((rule) => this.#parse(metric, rule))
    );
    for (const { metric } of this.#thresholds) this.#values.set(metric, []);
  }

  add(samples) {
    for (const { metric, value, tags } of samples) {
      if (!this.#values.has(metric)) this.#values.set(metric, []);
      for (const [name, values] of this.#values) {
        const [base, wanted] = split(name);
        if (base === metric && wanted.every(([key, tag]) => String(tags[key]) === tag)) values.push(value);
      }
      if (metric === 'checks') {
        const counts = this.#checks.get(tags.check) || { name: tags.check, passes: 0, fails: 0 };
        counts[value ? 'passes' : 'fails'] += 1;
        this.#checks.set(tags.check, counts);
      }
    }
  }

  /** The thresholds that don't hold. One on a metric without samples is judged, too. */
  crossed(ms) {
    return this.#thresholds
      .filter(({ metric, aggregation, compare, bound }) => {
        const of = this.#aggregate(metric, ms);
        return !compare(of(aggregation), bound);
      })
      .map(({ metric, rule }) => `${metric}: ${rule}`);
  }

  /** What handleSummary gets. */
  summary(ms, crossed) {
    const metrics = {};
    for (const name of this.#values.keys()) {
      const type = this.#types.get(split(name)[0]);
      const of = this.#aggregate(name, ms);
      const stats = {
        counter: ['count', 'rate'],
        gauge: ['value', 'min', 'max'],
        rate: ['rate', 'passes', 'fails'],
        trend: this.#options.summaryTrendStats || ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)'],
      }[type];
      metrics[name] = { type, values: Object.fromEntries(stats.map((stat) => [stat, of(stat)])) };
      const rules = this.#thresholds.filter(({ metric }) => metric === name);
      if (rules.length > 0) {
        const ok = ({ rule }) => ({ ok: !crossed.includes(`${name}: ${rule}`) });
        metrics[name].thresholds = Object.fromEntries(rules.map((rule) => [rule.rule, ok(rule)]));
      }
    }
    const root_group = { name: '', path: '', groups: [], checks: [...this.#checks.values()] };
    return { root_group, options: this.#options, state: { testRunDurationMs: ms }, metrics };
  }

  #parse(metric, rule) {
    const type = this.#types.get(split(metric)[0]);
    if (!type) throw invalid(`metric ${metric} does not exist in the script`);
    const parsed = /^(\w+(?:\([\d.]+\))?)\s*(<=|>=|<|>|==|!=)\s*(-?[\d.]+)$/.exec(rule);
    if (!parsed || !AGGREGATIONS[type].includes(parsed[1].replace(/\(.*/, ''))) {
      throw invalid(`threshold ${rule} doesn't fit ${metric}, a ${type}`);
    }
    return { metric, rule, aggregation: parsed[1], compare: COMPARISONS[parsed[2]], bound: Number(parsed[3]) };
  }

  #aggregate(name, ms) {
    const values = this.#values.get(name);
    const type = this.#types.get(split(name)[0]);
    const sorted = type === 'trend' ? [...values].sort((a, b) => a - b) : values;
    const sum = values.reduce((all, value) => all + value, 0);
    const per = {
      count: () => (type === 'counter' ? sum : values.length),
      rate: () => (type === 'counter' ? (sum * 1000) / ms : sum / values.length),
      passes: () => sum,
      fails: () => values.length - sum,
      value: () => values.at(-1) ?? 0,
      min: () => (values.length === 0 ? 0 : values.reduce((a, b) => Math.min(a, b))),
      max: () => values.reduce((a, b) => Math.max(a, b), 0),
      avg: () => (values.length === 0 ? 0 : sum / values.length),
      med: () => percentile(sorted, 50),
    };
    return (stat) => {
      const p = /^p\(([\d.]+)\)$/.exec(stat);
      if (p) return percentile(sorted, Number(p[1]));
      if (!per[stat]) throw invalid(`there is no statistic ${stat}`);
      return per[stat]();
    };
  }
}

/** Between the two nearest values, in proportion. */
export function percentile(sorted, percent) {
  if (sorted.length === 0) return 0;
  const at = (percent / 100) * (sorted.length - 1);
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
}

function split(name) {
  const [, base, tags] = /^([^{]+)(?:\{(.*)\})?$/.exec(name);
  return [base, tags ? tags.split(',').map((tag) => tag.split(':')) : []];
}

function invalid(message) {
  return Object.assign(new Error(message), { invalidConfig: true });
}

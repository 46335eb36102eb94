// Loads a script into a realm that has ECMAScript and what k6 adds to it, but nothing of Node, nor what k6's engine
// lacks. Imports are the modules of the stand-in or files named by a relative path; anything else fails.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import vm from 'node:vm';
import { MODULES } from './modules.mjs';
import { insideInit } from './state.mjs';

const MISSING_IN_K6 = ['Intl', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'WeakRef'];

/**
 * @param {string} script a path
 * @param {Record<string, string>} env what `__ENV` holds
 */
export async function loadScript(script, env) {
  const main = resolve(script);
  const context = vm.createContext({
    __ENV: Object.freeze({ ...env }),
    __VU: 0,
    __ITER: 0,
    console: { error: (message) => console.error(message) },
    open: (path, ...rest) => {
      insideInit('open()');
      if (rest.length > 0) throw new Error('the stand-in opens text only');
      return readFileSync(resolve(dirname(main), path), 'utf8');
    },
  });
  vm.runInContext(MISSING_IN_K6.map((name) => `delete globalThis.${name};`).join(''), context);

  const loaded = new Map();
  const link = (specifier, from) => {
    if (/^k6(\/|$)/.test(specifier)) return known(`${specifier}`, () => builtIn(specifier, context));
    if (!/^\.\.?\//.test(specifier)) throw new Error(`k6 has no module ${specifier}, imported by ${from.identifier}`);
    return file(resolve(dirname(from.identifier), specifier));
  };
  const known = (key, make) => {
    if (!loaded.has(key)) loaded.set(key, make());
    return loaded.get(key);
  };
  const file = (path) =>
    known(path, () => new vm.SourceTextModule(readFileSync(path, 'utf8'), { context, identifier: path }));

  const module = file(main);
  await module.link(link);
  await module.evaluate();
  return { namespace: module.namespace, context };
}

/** A module of k6: its members by name, and all of them as the default. Getters have no name, as in k6. */
function builtIn(specifier, context) {
  const members = MODULES[specifier];
  if (!members) throw new Error(`the stand-in has no module ${specifier}`);
  const names = Object.entries(Object.getOwnPropertyDescriptors(members)).flatMap(([name, { get }]) => (get ? [] : name));
  return new vm.SyntheticModule(
    [...names, 'default'],
    function () {
      for (const name of names) this.setExport(name, members[name]);
      this.setExport('default', members);
    },
    { context, identifier: specifier }
  );
}

import { fieldsOf } from './read-fields.js';
import type { Turn } from './transcript.js';

const SUFFIX = '.plan.md';
/** Tools that make a plan, or report one of its steps. */
const PLAN_TOOLS: ReadonlySet<string> = new Set(['make_plan', 'plan_step']);

const isPlan = (path: unknown): path is string => typeof path === 'string' && path.endsWith(SUFFIX);

/** Returns the paths of the plans that turns have made or worked on, and of plans among files. */
export const plansOf = (turns: readonly Turn[], files: readonly { readonly path: string }[]) => {
  const worked = turns
    .flatMap(({ items }) => items)
    .flatMap((item) =>
      item.kind === 'tool' && PLAN_TOOLS.has(item.name) && item.status === 'completed' && !item.isError
        ? [fieldsOf(item.input)['path']]
        : [],
    );
  const paths = [...worked.toReversed(), ...files.map(({ path }) => path)].filter(isPlan);
  return [...new Set(paths)];
};

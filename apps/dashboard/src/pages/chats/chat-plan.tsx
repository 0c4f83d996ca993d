import { lazy, Suspense, useState } from 'react';
import { css as ui, Loading } from '../../ui/ui.js';

const PlanPart = lazy(async () => ({ default: (await import('../plans/plan-steps.js')).PlanPart }));

interface ChatPlanProps {
  /** Plans of the chat, the newest first. */
  readonly paths: readonly string[];
}

/** A plan of a chat, as its page shows it. A chat with several plans shows the newest first. */
export const ChatPlan = ({ paths }: ChatPlanProps) => {
  const [chosen, choose] = useState<string | null>(null);
  const path = chosen !== null && paths.includes(chosen) ? chosen : paths[0];
  if (path === undefined) return null;
  return (
    <section aria-label="Plan of this chat">
      <h2>Plan</h2>
      {paths.length > 1 && (
        <select
          className={ui.input}
          aria-label="Shown plan"
          value={path}
          onChange={({ target }) => choose(target.value)}
        >
          {paths.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <Suspense fallback={<Loading what="the plan" />}>
        <PlanPart key={path} path={path} />
      </Suspense>
    </section>
  );
};

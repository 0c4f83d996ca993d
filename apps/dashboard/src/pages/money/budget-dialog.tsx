import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useFetched } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm, type FieldErrors } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, Loading, ProblemBox } from '../../ui/ui.js';

export type Scope = RouteReply<'readBudgets'>['scopes'][number];

/** Budget to set: that of an agent and its descendants, or of each session, day or month. */
export type BudgetTarget =
  { readonly kind: 'agent'; readonly agentId: string } | { readonly kind: 'session' | 'day' | 'month' };

interface BudgetDialogProps {
  readonly target: BudgetTarget;
  readonly onClose: () => void;
  readonly onSet: () => void;
}

const titleOf = (target: BudgetTarget): string =>
  target.kind === 'agent' ? `Set the budget of ${target.agentId}` : `Set the budget of each ${target.kind}`;

const hintOf = (target: BudgetTarget): string =>
  target.kind === 'agent'
    ? 'For the agent and its descendants together. Empty: no limit.'
    : 'Replaces the limit of the configuration. Empty: no limit.';

const limitsOf = (form: FormData) => {
  const amount = (name: string, unit: number): number | null => {
    const text = String(form.get(name) ?? '').trim();
    return text === '' ? null : Math.round(Number(text) * unit);
  };
  return { limitTokens: amount('tokens', 1), limitMicroUsd: amount('usd', 1e6) };
};

const setLimits = (target: BudgetTarget, body: ReturnType<typeof limitsOf>) =>
  target.kind === 'agent'
    ? client.http.setAgentLimit({ params: { id: target.agentId }, body })
    : client.http.setWorkspaceLimit({ params: { scope: target.kind }, body });

type Budgets = RouteReply<'readBudgets'>;
type Limits = Pick<Scope, 'limitTokens' | 'limitMicroUsd' | 'limitFrom'>;

const limitsIn = ({ scopes, eachSession }: Budgets, target: BudgetTarget): Limits | undefined => {
  if (target.kind === 'session') return eachSession;
  if (target.kind === 'agent') return scopes.find(({ key }) => key === `agent/${target.agentId}`);
  return scopes.find(({ kind }) => kind === target.kind);
};

/** Reads the limits in force when the dialog opens. An older reply would bring back an old limit. */
const useLimits = (target: BudgetTarget) => {
  const [key] = useState(() => `limits ${performance.now()}`);
  const query = target.kind === 'agent' ? { agent: target.agentId } : {};
  return useFetched(key, (signal) => client.http.readBudgets({ query, signal }));
};

interface LimitFieldsProps {
  readonly scope: Limits | undefined;
  readonly hint: string;
  readonly errors: FieldErrors;
}

const LimitFields = ({ hint, scope, errors }: LimitFieldsProps) => {
  const microUsd = scope?.limitMicroUsd;
  return (
    <>
      <Field label="Tokens" hint={hint} error={errors['tokens']}>
        {(props) => (
          <input
            {...props}
            name="tokens"
            type="number"
            min={0}
            step={1}
            defaultValue={scope?.limitTokens ?? ''}
          />
        )}
      </Field>
      <Field label="US dollars" hint="Empty: no limit." error={errors['usd']}>
        {(props) => (
          <input
            {...props}
            name="usd"
            type="number"
            min={0}
            step="any"
            defaultValue={typeof microUsd === 'number' ? microUsd / 1e6 : ''}
          />
        )}
      </Field>
    </>
  );
};

/** Sets a budget. The next model calls are admitted by it. */
export const BudgetDialog = ({ target, onClose, onSet }: BudgetDialogProps) => {
  const { run, isBusy, problem } = useAct();
  const limits = useLimits(target);
  const scope = limits.data && limitsIn(limits.data, target);
  const finish = (change: () => Promise<unknown>) =>
    run(async () => {
      await change();
      onSet();
      onClose();
    });
  const { errors, props: form } = useCheckedForm((given) => finish(() => setLimits(target, limitsOf(given))));
  const reset = (): void => {
    if (target.kind === 'agent') return;
    const { kind } = target;
    finish(() => client.http.removeWorkspaceLimit({ params: { scope: kind } }));
  };
  return (
    <Dialog title={titleOf(target)} onClose={onClose}>
      <form {...form} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        {limits.problem && <ProblemBox problem={limits.problem} retry={limits.refresh} />}
        {limits.isLoading && <Loading what="the limits in force" />}
        {limits.data && <LimitFields hint={hintOf(target)} {...{ scope, errors }} />}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          {target.kind !== 'agent' && (
            <ActButton
              permission="budgets:write"
              isOff={isBusy || (scope !== undefined && scope.limitFrom !== 'run_time')}
              onClick={reset}
            >
              Use the configured limit
            </ActButton>
          )}
          <ActButton permission="budgets:write" type="submit" look="primary" isOff={isBusy || !limits.data}>
            Set budget
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

import type { RouteReply } from '@antiphon/client';
import type { FormEvent } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';

export type Scope = RouteReply<'readBudgets'>['scopes'][number];

/** Budget to set: that of an agent and its descendants, or of each session, day or month. */
export type BudgetTarget =
  { readonly kind: 'agent'; readonly agentId: string } | { readonly kind: 'session' | 'day' | 'month' };

interface BudgetDialogProps {
  readonly target: BudgetTarget;
  /** Limits in force, which the fields begin with. */
  readonly scope?: Pick<Scope, 'limitTokens' | 'limitMicroUsd' | 'limitFrom'> | undefined;
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

interface LimitFieldsProps extends Pick<BudgetDialogProps, 'scope'> {
  readonly hint: string;
}

const LimitFields = ({ hint, scope }: LimitFieldsProps) => {
  const microUsd = scope?.limitMicroUsd;
  return (
    <>
      <Field label="Tokens" hint={hint}>
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
      <Field label="US dollars" hint="Empty: no limit.">
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
export const BudgetDialog = ({ target, scope, onClose, onSet }: BudgetDialogProps) => {
  const { run, isBusy, problem } = useAct();
  const finish = (change: () => Promise<unknown>) =>
    run(async () => {
      await change();
      onSet();
      onClose();
    });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const body = limitsOf(new FormData(event.currentTarget));
    finish(() => setLimits(target, body));
  };
  const reset = (): void => {
    if (target.kind === 'agent') return;
    const { kind } = target;
    finish(() => client.http.removeWorkspaceLimit({ params: { scope: kind } }));
  };
  return (
    <Dialog title={titleOf(target)} onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <LimitFields hint={hintOf(target)} scope={scope} />
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
          <ActButton permission="budgets:write" type="submit" look="primary" isOff={isBusy}>
            Set budget
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

import type { RouteReply, RouteRequest } from '@antiphon/client';
import { useMemo, useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { keepPosition, navigate } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Icon } from '../../ui/icon.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import { MoreFields } from './more-fields.js';
import css from './tasks.module.css';

export type TaskSpec = RouteRequest<'createTask'>['body'];
type Worker = NonNullable<TaskSpec['worker']>;
type Agent = RouteReply<'listAgents'>['agents'][number];

const namesOf = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

type Budget = NonNullable<TaskSpec['budget']>;

/** Returns the budget of both fields; undefined if both are empty. */
const budgetOf = (tokens: number | undefined, usd: number | undefined): Budget | undefined =>
  tokens === undefined && usd === undefined
    ? undefined
    : { tokens: tokens ?? null, microUsd: usd === undefined ? null : Math.round(usd * 1e6) };

const specOf = (form: FormData): TaskSpec => {
  const text = (name: string): string => String(form.get(name) ?? '').trim();
  const count = (name: string): number | undefined => (text(name) === '' ? undefined : Number(text(name)));
  const [strikes, backoffMs] = [count('strikes'), count('backoffMs')];
  const budget = budgetOf(count('tokens'), count('usd'));
  return {
    prompt: text('prompt'),
    priority: count('priority') ?? 5,
    capabilities: namesOf(text('capabilities')),
    worker: text('worker') === 'external' ? 'external' : 'agent',
    ...(text('title') && { title: text('title') }),
    ...(text('agent') && { agent: text('agent') }),
    ...(text('project') && { project: text('project') }),
    ...(text('parentTask') && { parentTask: text('parentTask') }),
    ...(text('deadline') && { deadline: new Date(text('deadline')).toISOString() }),
    ...((strikes ?? backoffMs) !== undefined && {
      retry: { ...(strikes !== undefined && { strikes }), ...(backoffMs !== undefined && { backoffMs }) },
    }),
    ...(budget && { budget }),
  };
};

/** Returns why no agent would do a task now; null if one would. */
export const warningOf = (agents: readonly Agent[], capabilities: readonly string[]): string | null => {
  const living = agents.filter(({ state }) => state !== 'terminated');
  const able = living.filter((agent) => capabilities.every((name) => agent.capabilities.includes(name)));
  if (able.length > 0) return null;
  const missing = capabilities.filter((name) => !living.some((agent) => agent.capabilities.includes(name)));
  const names = (missing.length > 0 ? missing : capabilities).join(', ');
  return `No agent has ${names}${missing.length > 0 ? '' : ' together'}: the task waits until one is spawned.`;
};

const TextFields = ({
  start,
  errors,
}: {
  start: Partial<TaskSpec>;
  errors: Readonly<Record<string, string>>;
}) => (
  <>
    <Field label="Prompt" error={errors['prompt']}>
      {(props) => <textarea {...props} name="prompt" required rows={4} defaultValue={start.prompt ?? ''} />}
    </Field>
    <Field label="Title" hint="Empty: the beginning of the prompt.">
      {(props) => (
        <input {...props} name="title" maxLength={500} autoComplete="off" defaultValue={start.title ?? ''} />
      )}
    </Field>
  </>
);

/** Returns the ids of agents and the chosen one, which is kept before the agents are read. */
const idsOf = (agents: readonly Agent[], chosen: string): string[] => {
  const ids = agents.map(({ id }) => id);
  return chosen === '' || ids.includes(chosen) ? ids : [chosen, ...ids];
};

interface HolderFieldsProps {
  readonly agents: readonly Agent[];
  readonly agent: string;
  readonly setAgent: (agent: string) => void;
  readonly worker: Worker;
  readonly setWorker: (worker: Worker) => void;
}

const HolderFields = ({ agents, agent, setAgent, worker, setWorker }: HolderFieldsProps) => (
  <>
    <Field label="Worker" hint="A program claims a task of an external worker, and no model is called.">
      {(props) => (
        <select
          {...props}
          name="worker"
          value={worker}
          onChange={(event) => setWorker(event.target.value as Worker)}
        >
          <option value="agent">agent</option>
          <option value="external">external worker</option>
        </select>
      )}
    </Field>
    <Field label="Agent" hint="That must do it. Empty: any idle one with the capabilities.">
      {(props) => (
        <select {...props} name="agent" value={agent} onChange={(event) => setAgent(event.target.value)}>
          <option value="">any</option>
          {idsOf(agents, agent).map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      )}
    </Field>
  </>
);

interface CreateDialogProps {
  /** Specification to begin with, such as that of a failed task. */
  readonly start?: Partial<TaskSpec>;
  /** Task that the new one tries again. */
  readonly retryOf?: string;
  readonly title?: string;
  readonly onClose: () => void;
}

/** Creates a task, and warns if no agent could do it. */
export const CreateDialog = ({
  start = {},
  title = 'Create a task',
  retryOf,
  onClose,
}: CreateDialogProps) => {
  const { run, isBusy, problem } = useAct();
  const { data } = useRead('listAgents', { query: { limit: 500 } }, { hasPast: false });
  const [capabilities, setCapabilities] = useState((start.capabilities ?? []).join(', '));
  const [agent, setAgent] = useState(start.agent ?? '');
  const [worker, setWorker] = useState<Worker>(start.worker ?? 'agent');
  const agents = data?.agents ?? [];
  const warning = useMemo(
    () => (data && agent === '' && worker === 'agent' ? warningOf(data.agents, namesOf(capabilities)) : null),
    [data, agent, worker, capabilities],
  );
  const { errors, props: form } = useCheckedForm((given) =>
    run(async () => {
      const body = { ...specOf(given), ...(retryOf && { retryOf }) };
      const task = await client.http.createTask({ body });
      navigate(keepPosition(`/tasks/${task.id}`));
    }),
  );
  return (
    <Dialog title={title} onClose={onClose}>
      <form {...form} className={css.form}>
        {problem && <ProblemBox problem={problem} />}
        <TextFields start={start} errors={errors} />
        <Field label="Capabilities" hint="Names with commas. Empty: any agent.">
          {(props) => (
            <input
              {...props}
              name="capabilities"
              autoComplete="off"
              value={capabilities}
              onChange={(event) => setCapabilities(event.target.value)}
            />
          )}
        </Field>
        <HolderFields {...{ agents, agent, setAgent, worker, setWorker }} />
        <Field label="Project">
          {(props) => <input {...props} name="project" maxLength={200} defaultValue={start.project ?? ''} />}
        </Field>
        <MoreFields start={start} errors={errors} />
        {warning && (
          <p className={css.warning} role="status">
            <Icon name="warning" size={14} /> {warning}
          </p>
        )}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="runs:write" type="submit" look="primary" isOff={isBusy}>
            Create
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

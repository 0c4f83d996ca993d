import type { RouteRequest } from '@antiphon/client';
import { useState } from 'react';
import type { RoleSettings } from '../../data/role-file.js';
import { navigate, useParam } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import { useRead } from '../../data/use-read.js';
import type { Agent } from './agent-card.js';
import { DefinitionFields, namesOf } from './definition-fields.js';
import { RoleFileField } from './role-file-field.js';

interface SpawnDialogProps {
  readonly onClose: () => void;
}

type Spec = RouteRequest<'spawnAgent'>['body'];

const specOf = (form: FormData): Spec => {
  const text = (name: string): string => String(form.get(name) ?? '').trim();
  const tokens = Number(text('tokens'));
  return {
    name: text('name'),
    ...(text('base') && { base: text('base') }),
    ...(text('role') && { role: text('role') }),
    ...(text('provider') && { provider: text('provider') }),
    ...(text('model') && { model: text('model') }),
    ...(text('tools') && { tools: namesOf(text('tools')) }),
    ...(text('capabilities') && { capabilities: namesOf(text('capabilities')) }),
    ...(text('project') && { project: text('project') }),
    ...(text('systemPrompt') && { systemPrompt: text('systemPrompt') }),
    ...(tokens > 0 && { budget: { tokens } }),
  };
};

/** Sets fields that a person may still change. */
const fill = (form: HTMLFormElement | null, values: Readonly<Record<string, string | undefined>>): void => {
  for (const [name, value] of Object.entries(values)) {
    const field = form?.elements.namedItem(name);
    if (value !== undefined && (field instanceof HTMLInputElement || field instanceof HTMLSelectElement))
      field.value = value;
  }
};

/** Spawns an agent from a configured one, and opens it. */
export const SpawnDialog = ({ onClose }: SpawnDialogProps) => {
  const { run, isBusy, problem } = useAct();
  const [provider, setProvider] = useState('');
  const needed = useParam('can');
  const bases: readonly Agent[] = useRead('listAgents', {}).data?.agents ?? [];
  const configured = bases
    .filter(({ origin, state }) => origin === 'configuration' && state !== 'paused')
    .toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault));
  const { errors, props: form } = useCheckedForm((given) =>
    run(async () => {
      const agent = await client.http.spawnAgent({ body: specOf(given) });
      navigate(`/agents/${encodeURIComponent(agent.id)}`);
    }),
  );
  const takeRole = (role: string, { name, base, model, tools, ...settings }: RoleSettings): void => {
    fill(form.ref.current, { role, name: name ?? role, base, model, tools: tools?.join(', ') });
    if (settings.provider !== undefined) setProvider(settings.provider);
  };
  return (
    <Dialog title="Spawn an agent" onClose={onClose}>
      <form {...form} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <RoleFileField onChoose={takeRole} />
        <Field label="Name" error={errors['name']}>
          {(props) => (
            <input {...props} name="name" required pattern=".*\S.*" maxLength={200} autoComplete="off" />
          )}
        </Field>
        <Field label="Base" hint="Its approval rules, tool limits and identity apply.">
          {(props) => (
            <select {...props} name="base">
              {configured.map(({ id }) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          )}
        </Field>
        <DefinitionFields
          provider={provider}
          onProvider={setProvider}
          hint="Empty fields are as in the base."
          needed={needed}
        />
        <Field label="System prompt" hint="Empty: the one of the base.">
          {(props) => <textarea {...props} name="systemPrompt" rows={3} />}
        </Field>
        <Field label="Project">{(props) => <input {...props} name="project" maxLength={200} />}</Field>
        <Field
          label="Budget in tokens"
          error={errors['tokens']}
          hint="For the agent and its descendants together. Empty: no limit of its own."
        >
          {(props) => <input {...props} name="tokens" type="number" min={1} step={1} />}
        </Field>
        <Foot canSpawn={!isBusy} onClose={onClose} />
      </form>
    </Dialog>
  );
};

const Foot = ({ canSpawn, onClose }: { readonly canSpawn: boolean; readonly onClose: () => void }) => (
  <div className={ui.dialogFoot}>
    <Button onClick={onClose}>Close</Button>
    <ActButton permission="agents:write" type="submit" look="primary" isOff={!canSpawn}>
      Spawn
    </ActButton>
  </div>
);

import type { RouteRequest } from '@antiphon/client';
import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useParam } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';

type Body = NonNullable<RouteRequest<'sendMessage'>['body']>;

const TARGETS = { agent: 'an agent', topic: 'a topic', everyone: 'everyone' } as const;
type Target = keyof typeof TARGETS;

const bodyOf = (form: FormData, target: Target, cause: string): Body => {
  const text = (name: string): string => String(form.get(name) ?? '').trim();
  const to =
    target === 'agent'
      ? { agent: text('agent') }
      : target === 'topic'
        ? { topic: text('topic') }
        : { everyone: true as const };
  return {
    to,
    type: text('type') === 'Request' ? 'Request' : 'AgentSpoke',
    content: { text: text('text') },
    ...(cause && { cause }),
  };
};

const AgentField = ({ preset }: { readonly preset: string }) => {
  const agents = useRead('listAgents', {}, { hasPast: false }).data?.agents ?? [];
  return (
    <Field label="Agent" hint="It reads the message at its next step.">
      {(props) => (
        <select {...props} name="agent" defaultValue={preset} key={agents.length}>
          {agents.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      )}
    </Field>
  );
};

interface TargetFieldProps {
  readonly target: Target;
  readonly onTarget: (target: Target) => void;
}

const TargetField = ({ target, onTarget }: TargetFieldProps) => (
  <Field label="To">
    {(props) => (
      <select {...props} value={target} onChange={(event) => onTarget(event.target.value as Target)}>
        {Object.entries(TARGETS).map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    )}
  </Field>
);

/** Writes a message to an agent, to the subscribers of a topic, or to everyone. */
export const ComposeDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const { run, isBusy, problem } = useAct();
  const [target, setTarget] = useState<Target>('agent');
  const preset = useParam('to');
  const cause = useParam('cause');
  const { errors, props: form } = useCheckedForm((given) =>
    run(async () => {
      await client.http.sendMessage({ body: bodyOf(given, target, cause) });
      onClose();
    }),
  );
  return (
    <Dialog title={cause ? 'Answer a message' : 'Write a message'} onClose={onClose}>
      <form {...form} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <TargetField target={target} onTarget={setTarget} />
        {target === 'agent' && <AgentField preset={preset} />}
        {target === 'topic' && (
          <Field label="Topic" error={errors['topic']} hint="Its subscribers get the message.">
            {(props) => (
              <input
                {...props}
                name="topic"
                required
                maxLength={100}
                pattern="[A-Za-z0-9][A-Za-z0-9_./\-]*"
              />
            )}
          </Field>
        )}
        <Field label="Type" hint="A request asks for an answer.">
          {(props) => (
            <select {...props} name="type">
              <option>AgentSpoke</option>
              <option>Request</option>
            </select>
          )}
        </Field>
        <Field label="Text" error={errors['text']}>
          {(props) => <textarea {...props} name="text" rows={4} required maxLength={16_000} />}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="agents:write" type="submit" look="primary" icon="send" isOff={isBusy}>
            Send
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

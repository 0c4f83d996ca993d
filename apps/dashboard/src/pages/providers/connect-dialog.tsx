import { useState, type FormEvent } from 'react';
import { navigate } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { Button, css as ui, Dialog, Field, ProblemBox, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { describeTest, KINDS, kindOfKey } from './provider-kinds.js';
import type { Provider, ProviderKind, ProviderSpec, ProviderTest } from './provider-kinds.js';
import { UseFor, type Use } from './use-for.js';
import css from '../pages.module.css';

interface ConnectDialogProps {
  /** A connected provider whose key or address changes; null for a new one. */
  readonly known: Provider | null;
  readonly taken: readonly string[];
  readonly onClose: () => void;
}

/** All that was typed. It lives as long as the dialog. */
interface Draft {
  readonly kind: ProviderKind;
  readonly isKindChosen: boolean;
  readonly secret: string;
  readonly baseUrl: string;
}

const emptyDraft = (known: Provider | null): Draft => ({
  kind: (known?.kind ?? 'anthropic') as ProviderKind,
  isKindChosen: known !== null,
  secret: '',
  baseUrl: '',
});

const specOf = ({ kind, secret, baseUrl }: Draft): ProviderSpec => ({
  kind,
  ...(secret.trim() && { secret: secret.trim() }),
  ...(baseUrl.trim() && { baseUrl: baseUrl.trim() }),
});

/** Returns a name that no provider has: that of the kind, or with a number. */
const freeName = (kind: string, taken: readonly string[]): string => {
  for (let number = 1; ; number++) {
    const name = number === 1 ? kind : `${kind}-${number}`;
    if (!taken.includes(name)) return name;
  }
};

const isComplete = ({ kind, secret, baseUrl }: Draft): boolean => {
  const { needsKey, needsUrl } = KINDS[kind];
  return (!needsKey || secret.trim() !== '') && (!needsUrl || baseUrl.trim() !== '');
};

interface KeyFieldsProps {
  readonly draft: Draft;
  readonly change: (draft: Draft) => void;
}

const KeyField = ({ draft, change }: KeyFieldsProps) => {
  const { kind, isKindChosen, secret } = draft;
  const paste = (text: string): void => {
    const guessed = isKindChosen ? null : kindOfKey(text);
    change({ ...draft, secret: text, kind: guessed ?? kind });
  };
  const promise = 'It is stored encrypted and never shown again.';
  return (
    <Field label="Key" hint={KINDS[kind].needsKey ? promise : `Empty if the server needs none. ${promise}`}>
      {(props) => (
        <input
          {...props}
          type="password"
          autoComplete="off"
          spellCheck={false}
          value={secret}
          onChange={(event) => paste(event.target.value)}
        />
      )}
    </Field>
  );
};

const KindFields = ({ draft, change }: KeyFieldsProps) => {
  const { kind, baseUrl } = draft;
  const choose = (chosen: string): void =>
    change({ ...draft, kind: chosen as ProviderKind, isKindChosen: true });
  return (
    <>
      <Field label="Kind" hint="Which API it speaks. Most keys tell it by their beginning.">
        {(props) => (
          <select {...props} value={kind} onChange={(event) => choose(event.target.value)}>
            {Object.entries(KINDS).map(([name, { title }]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Base URL"
        hint={KINDS[kind].needsUrl ? 'The address of the server.' : 'Empty: the address of the vendor.'}
      >
        {(props) => (
          <input
            {...props}
            type="url"
            inputMode="url"
            autoComplete="off"
            value={baseUrl}
            onChange={(event) => change({ ...draft, baseUrl: event.target.value })}
          />
        )}
      </Field>
    </>
  );
};

const TestResult = ({ test }: { readonly test: ProviderTest }) => {
  const { line, fix } = describeTest(test);
  return (
    <div role="status" className={css.stack}>
      <State of={test.works ? 'ok' : 'failed'}>{line}</State>
      {fix !== null && (
        <p>
          {fix}{' '}
          <span className={ui.muted}>
            <VisibleText text={test.message} />
          </span>
        </p>
      )}
    </div>
  );
};

/** Stores the provider, and gives it to the chosen agents. */
const connect = async (name: string, spec: ProviderSpec, { model, agents }: Use): Promise<void> => {
  await client.http.connectProvider({ params: { name }, body: spec });
  for (const id of agents)
    await client.http.controlAgent({ params: { id }, body: { provider: name, model } });
};

/**
 * Connects a provider: paste a key, test it, choose a model and its agents. A failed test keeps all
 * that was typed.
 */
export const ConnectDialog = ({ known, taken, onClose }: ConnectDialogProps) => {
  const [draft, setDraft] = useState(() => emptyDraft(known));
  const [test, setTest] = useState<ProviderTest | null>(null);
  const [use, setUse] = useState<Use>({ model: '', agents: [] });
  const { run, isBusy, problem } = useAct();
  const name = known?.name ?? freeName(draft.kind, taken);
  const works = test?.works === true;
  const change = (next: Draft): void => {
    setDraft(next);
    setTest(null);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const spec = specOf(draft);
    if (!works)
      return run(async () => {
        setTest(await client.http.testProvider({ body: spec }));
      });
    run(async () => {
      await connect(name, spec, use);
      const [first] = use.agents;
      if (first === undefined) onClose();
      else navigate(`/chats/new?agent=${encodeURIComponent(first)}`);
    });
  };
  return (
    <Dialog title={known ? `Change ${known.name}` : 'Connect a model'} onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <KeyField draft={draft} change={change} />
        <KindFields draft={draft} change={change} />
        {test && <TestResult test={test} />}
        {works && <UseFor kind={draft.kind} models={test.models} isNew={known === null} onChange={setUse} />}
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton
            permission="credentials:manage"
            type="submit"
            look="primary"
            isOff={isBusy || !isComplete(draft) || (works && use.agents.length > 0 && use.model === '')}
          >
            {!works ? 'Test' : use.agents.length > 0 ? 'Start chatting' : 'Connect'}
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

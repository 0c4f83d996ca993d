import { useRead } from '../../data/use-read.js';
import { Field } from '../../ui/ui.js';

/** Returns the names of a list as it was typed, with commas or spaces between them. */
export const namesOf = (text: string): string[] => text.split(/[\s,]+/).filter((name) => name !== '');

interface DefinitionFieldsProps {
  /** Values that the fields begin with. */
  readonly initial?:
    | {
        readonly role: string | null;
        readonly provider: string;
        readonly model: string;
        readonly tools: readonly string[];
        readonly capabilities: readonly string[];
      }
    | undefined;
  /** Provider whose models are offered, and what to do when it changes. */
  readonly provider: string;
  readonly onProvider: (name: string) => void;
  /** Text for empty fields, such as what applies then. */
  readonly hint: string;
  /** Capabilities that a new agent begins with, such as those that a task needs. */
  readonly needed?: string;
}

type ProviderFieldProps = Pick<DefinitionFieldsProps, 'initial' | 'provider' | 'onProvider'> & {
  readonly providers: readonly string[];
};

const ProviderField = ({ initial, provider, onProvider, providers }: ProviderFieldProps) => (
  <Field label="Provider">
    {(props) => (
      <select
        {...props}
        name="provider"
        value={provider}
        onChange={(event) => onProvider(event.target.value)}
      >
        {!initial && <option value="">that of the base</option>}
        {initial && !providers.includes(initial.provider) && <option>{initial.provider}</option>}
        {providers.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    )}
  </Field>
);

interface ModelFieldProps {
  readonly initial: DefinitionFieldsProps['initial'];
  /** Provider whose models are offered; null for one that lists none. */
  readonly provider: string | null;
}

const ModelField = ({ initial, provider }: ModelFieldProps) => {
  const params = { name: provider ?? '' };
  const options = { hasPast: false, isOff: provider === null };
  const models = useRead('listProviderModels', { params }, options).data?.models;
  return (
    <Field label="Model" hint={initial ? 'A model of the provider.' : 'Empty: that of the base.'}>
      {(props) => (
        <>
          <input
            {...props}
            name="model"
            list="models-of-agent"
            maxLength={200}
            autoComplete="off"
            defaultValue={initial?.model ?? ''}
          />
          <datalist id="models-of-agent">
            {models?.map(({ id }) => (
              <option key={id} value={id} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
};

/** Fields of a definition that a new agent and a changed one share. */
export const DefinitionFields = ({ initial, provider, onProvider, hint, needed }: DefinitionFieldsProps) => {
  const providers = useRead('listProviders', {}, { hasPast: false }).data?.providers ?? [];
  const names = providers.map(({ name }) => name);
  const isListed = providers.some(({ name, scripted }) => name === provider && !scripted);
  return (
    <>
      <Field label="Role" hint={hint}>
        {(props) => <input {...props} name="role" maxLength={200} defaultValue={initial?.role ?? ''} />}
      </Field>
      <ProviderField initial={initial} provider={provider} onProvider={onProvider} providers={names} />
      <ModelField initial={initial} provider={isListed ? provider : null} />
      <Field label="Tools" hint="Names, separated by commas.">
        {(props) => (
          <input {...props} name="tools" autoComplete="off" defaultValue={initial?.tools.join(', ')} />
        )}
      </Field>
      <Field label="Capabilities" hint="What its tasks may need, separated by commas.">
        {(props) => (
          <input
            {...props}
            name="capabilities"
            autoComplete="off"
            defaultValue={initial?.capabilities.join(', ') ?? needed}
          />
        )}
      </Field>
    </>
  );
};

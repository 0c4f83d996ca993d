import { useMemo, useRef, useState } from 'react';
import { readRoleFile, ROLE_TEXTS, writeRoleFile, type RoleFile } from '../../data/role-file.js';
import { Markdown } from '../../ui/markdown.js';
import { css as ui, Field } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './files.module.css';

const TITLES = {
  name: 'Name',
  description: 'Description',
  base: 'Base',
  provider: 'Provider',
  model: 'Model',
} as const;

/** A role as its file defines it: settings of its agent, and the prompt. */
export const RoleView = ({ text }: { readonly text: string }) => {
  const { settings, prompt, unknown } = useMemo(() => readRoleFile(text), [text]);
  const shown = ROLE_TEXTS.filter((key) => settings[key] !== undefined);
  return (
    <div className={css.roleView}>
      <dl className={ui.facts}>
        {shown.map((key) => [
          <dt key={`${key} name`}>{TITLES[key]}</dt>,
          <dd key={key}>
            <VisibleText text={settings[key] ?? ''} />
          </dd>,
        ])}
        <dt>Tools</dt>
        <dd>
          {settings.tools === undefined ? (
            <span className={ui.muted}>those of its base</span>
          ) : (
            <VisibleText text={settings.tools.join(', ') || 'none'} />
          )}
        </dd>
      </dl>
      {unknown !== null && <p className={ui.muted}>Its front matter has more: see the source.</p>}
      <div className={css.markdown}>
        <Markdown text={prompt} />
      </div>
    </div>
  );
};

const namesOf = (text: string): string[] => text.split(/[\s,]+/).filter((name) => name !== '');

interface RoleFormProps {
  readonly text: string;
  readonly onChange: (text: string) => void;
}

/** Edits the file of a role by fields. A file that they cannot show is edited as a text. */
export const RoleForm = ({ text, onChange }: RoleFormProps) => {
  const first = useRef(text);
  const [role, setRole] = useState<Pick<RoleFile, 'settings' | 'prompt'>>(() => readRoleFile(first.current));
  const change = (next: Pick<RoleFile, 'settings' | 'prompt'>): void => {
    setRole(next);
    onChange(writeRoleFile(next));
  };
  const { settings, prompt } = role;
  const [tools, setTools] = useState(settings.tools?.join(', ') ?? '');
  return (
    <div className={css.roleForm}>
      {ROLE_TEXTS.map((key) => (
        <Field key={key} label={TITLES[key]} hint={key === 'name' ? 'Empty: the name of the file.' : ''}>
          {(props) => (
            <input
              {...props}
              autoComplete="off"
              value={settings[key] ?? ''}
              onChange={({ target: { value } }) =>
                change({ prompt, settings: { ...settings, [key]: value.trim() === '' ? undefined : value } })
              }
            />
          )}
        </Field>
      ))}
      <Field label="Tools" hint="Names with commas. Empty: those of its base.">
        {(props) => (
          <input
            {...props}
            autoComplete="off"
            value={tools}
            onChange={({ target: { value } }) => {
              const names = namesOf(value);
              setTools(value);
              change({ prompt, settings: { ...settings, tools: names.length === 0 ? undefined : names } });
            }}
          />
        )}
      </Field>
      <Field label="Prompt" hint="What the model gets as its system prompt.">
        {(props) => (
          <textarea
            {...props}
            rows={14}
            value={prompt}
            onChange={({ target: { value } }) => change({ settings, prompt: value })}
          />
        )}
      </Field>
    </div>
  );
};

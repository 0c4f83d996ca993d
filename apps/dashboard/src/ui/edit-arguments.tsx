import { useState, type KeyboardEvent } from 'react';
import { ActButton } from './act-button.js';
import { client } from '../data/gateway.js';
import { Field } from './field.js';
import { printJson } from './json.js';
import { Button, css as ui } from './ui.js';
import css from './approval-card.module.css';

type Decision = Parameters<typeof client.approvals.answer>[0];
type Input = NonNullable<Decision['input']>;

/** A place that may not be sent as it is. The path is empty for the text as a whole. */
interface Problem {
  readonly path: string;
  readonly message: string;
}

/** Returns the arguments of a text, or why it has none. */
const parse = (text: string): { readonly input: Input } | { readonly problem: Problem } => {
  try {
    return { input: JSON.parse(text) as Input };
  } catch (error) {
    return { problem: { path: '', message: `This is no JSON: ${(error as Error).message}` } };
  }
};

/** Returns what the gateway finds wrong with arguments, as a decision would. */
const findProblems = async (id: string, input: Input): Promise<readonly Problem[]> => {
  const { problems, deniedByRule } = await client.http.checkApproval({ params: { id }, body: { input } });
  if (problems.length > 0 || deniedByRule === null) return problems;
  return [{ path: '', message: `Rule ${deniedByRule} of the agent's policy denies these arguments.` }];
};

/** Reads the places to correct to a screen reader as soon as there are any. */
const Problems = ({ problems }: { readonly problems: readonly Problem[] }) => (
  <ul className={css.problems} role="alert">
    {problems.map(({ path, message }) => (
      <li key={path + message}>
        {path !== '' && <code>{path}</code>} {message}
      </li>
    ))}
  </ul>
);

interface EditArgumentsProps {
  readonly approvalId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly isOff: boolean;
  /** Runs work of the card, which shows its error. */
  readonly run: (work: () => Promise<void>) => void;
  /** Approves the call with these arguments. */
  readonly approve: (input: Input) => Promise<void>;
  readonly close: () => void;
}

/**
 * Edits the arguments of a call that waits. They are checked by the schema of the tool before they
 * are sent, and the focus stays in the text while there is a problem.
 */
export const EditArguments = (props: EditArgumentsProps) => {
  const { approvalId, tool, input, isOff, run, approve, close } = props;
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') close();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
  };
  const [text, setText] = useState(() => printJson(input));
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const submit = (): void =>
    run(async () => {
      const parsed = parse(text);
      const found = 'problem' in parsed ? [parsed.problem] : await findProblems(approvalId, parsed.input);
      setProblems(found);
      if ('input' in parsed && found.length === 0) await approve(parsed.input);
    });
  const error =
    problems.length === 0 ? undefined : `${problems.length === 1 ? 'A place' : 'Places'} to correct`;
  return (
    <form
      className={css.edit}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={keys}
    >
      <Field
        label={`New arguments of ${tool}`}
        hint="JSON. Ctrl+Enter approves, Escape leaves."
        error={error}
      >
        {(field) => (
          <textarea
            {...field}
            className={`${ui.input} ${css.text}`}
            rows={Math.min(16, text.split('\n').length + 1)}
            spellCheck={false}
            autoFocus
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setProblems([]);
            }}
          />
        )}
      </Field>
      <Problems problems={problems} />
      <div className={css.answer}>
        <Button onClick={close}>Leave unchanged</Button>
        <ActButton permission="approvals:answer" look="primary" icon="check" type="submit" isOff={isOff}>
          Approve with these arguments
        </ActButton>
      </div>
    </form>
  );
};

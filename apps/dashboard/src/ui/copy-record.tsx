import { useId, useState } from 'react';
import { usePosition } from '../data/router.js';
import { fetchJson } from '../data/gateway.js';
import { toProblem } from '../data/use-read.js';
import css from './copy-record.module.css';
import { printJson } from './json.js';
import { Button, css as ui } from './ui.js';

interface CopyRecordProps {
  /** Noun of the record, such as `session`. */
  readonly noun: string;
  /** Path of the dashboard. Default: the page. */
  readonly page?: string;
  /** Path of the API below `/api/v1`, whose reply is the JSON of the record; or the record itself. */
  readonly json: string | { readonly value: unknown };
  /** Command that prints the same record. */
  readonly command: string;
  /** False for a record that never changes, such as an event: no position is added. */
  readonly isOfPosition?: boolean;
}

/** Prints a word of a shell so that it is one argument. */
export const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

const withAt = (path: string, at: number | null): string =>
  at === null ? path : `${path}${path.includes('?') ? '&' : '?'}at=${at}`;

type Form = 'link' | 'JSON' | 'command';

const useCopy = ({ page, json, command, isOfPosition = true }: CopyRecordProps) => {
  const at = usePosition();
  const position = isOfPosition ? at : null;
  const [said, say] = useState('');
  const shell = position === null ? command : `${command} --at ${position}`;
  const textOf = async (form: Form): Promise<string> => {
    if (form === 'command') return shell;
    if (form === 'JSON')
      return printJson(
        typeof json === 'string' ? await fetchJson(withAt(`/api/v1${json}`, position)) : json.value,
      );
    return page === undefined ? location.href : location.origin + withAt(page, position);
  };
  const copy = async (form: Form): Promise<void> => {
    try {
      await navigator.clipboard.writeText(await textOf(form));
      say(`The ${form} is copied.`);
    } catch (error) {
      const { message } = toProblem(error);
      say(`The ${form} was not copied: ${message}.`);
    }
  };
  return { copy, said, say, shell };
};

/** Copies a record as a link, as JSON, and as the command that prints it, all as of the position. */
export const CopyRecord = (props: CopyRecordProps) => {
  const { noun } = props;
  const id = useId();
  const { copy, said, say, shell } = useCopy(props);
  const forms: readonly Form[] = ['link', 'JSON', 'command'];
  return (
    <>
      <Button icon="copy" popoverTarget={id}>
        {`Copy the ${noun}`}
      </Button>
      <div
        id={id}
        popover="auto"
        role="group"
        aria-label={`Copy the ${noun}`}
        className={css.box}
        onToggle={() => say('')}
      >
        <code className={ui.code}>{shell}</code>
        <div className={css.forms}>
          {forms.map((form) => (
            <Button key={form} onClick={() => void copy(form)}>
              {`Copy ${form}`}
            </Button>
          ))}
        </div>
        <p role="status">{said}</p>
      </div>
    </>
  );
};

import {
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type ButtonHTMLAttributes,
  type ReactNode,
  type SyntheticEvent,
} from 'react';
import { createStore, useStore } from '../data/store.js';
import type { Problem as ReadProblem } from '../data/use-read.js';
import { formatAge, formatDate, shortId } from './format.js';
import { Icon, type IconName } from './icon.js';
import css from './ui.module.css';
import { showsWhole } from './whole-values.js';

export { css };
export { Field } from './field.js';
export const classes = (...names: (string | false | null | undefined)[]): string =>
  names.filter(Boolean).join(' ');

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: 'primary' | 'danger' | 'quiet' | undefined;
  readonly icon?: IconName;
}

export const Button = ({ look, icon, children, className, ...rest }: ButtonProps) => (
  <button type="button" className={classes(css.button, look && css[look], className)} {...rest}>
    {icon && <Icon name={icon} />}
    {children}
  </button>
);

interface IconButtonProps extends Omit<ButtonProps, 'children'> {
  readonly icon: IconName;
  readonly label: string;
}

export const IconButton = ({ label, ...rest }: IconButtonProps) => (
  <Button aria-label={label} data-tip={label} look="quiet" className={css.iconOnly} {...rest} />
);

export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | 'none';

const TONES = new Map<string, readonly [Tone, IconName]>(
  Object.entries({
    idle: ['none', 'dot'],
    working: ['busy', 'play'],
    running: ['busy', 'play'],
    spawning: ['busy', 'clock'],
    cancelling: ['warn', 'clock'],
    waiting: ['none', 'clock'],
    ready: ['none', 'dot'],
    queued: ['none', 'clock'],
    assigned: ['busy', 'clock'],
    paused: ['warn', 'pause'],
    pending: ['warn', 'clock'],
    error: ['bad', 'cross'],
    failed: ['bad', 'cross'],
    denied: ['bad', 'cross'],
    invalid: ['bad', 'cross'],
    terminated: ['none', 'stop'],
    cancelled: ['none', 'stop'],
    skipped: ['none', 'stop'],
    withdrawn: ['none', 'stop'],
    voided: ['none', 'stop'],
    expired: ['warn', 'clock'],
    completed: ['ok', 'check'],
    granted: ['ok', 'check'],
    ok: ['ok', 'check'],
    healthy: ['ok', 'check'],
    active: ['ok', 'check'],
    degraded: ['bad', 'warning'],
    down: ['bad', 'cross'],
    revoked: ['none', 'stop'],
    draft: ['warn', 'dot'],
    info: ['none', 'dot'],
    warning: ['warn', 'warning'],
    frozen: ['bad', 'pause'],
    unknown: ['warn', 'warning'],
  }),
);

/** A state as icon and word, so that colour is never the only sign. */
export const State = ({ of, tone, children }: { of: string; tone?: Tone; children?: ReactNode }) => {
  const [ownTone, icon] = TONES.get(of) ?? ['none', 'dot'];
  return (
    <span className={css.state} data-tone={tone ?? ownTone} data-state={of}>
      <Icon name={icon} size={12} />
      {children ?? of}
    </span>
  );
};

interface PanelProps {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  readonly isPadded?: boolean;
  readonly className?: string | undefined;
}

export const Panel = ({ title, actions, children, isPadded = false, className }: PanelProps) => {
  const id = useId();
  return (
    <section className={classes(css.panel, className)} aria-labelledby={id}>
      <div className={css.panelHead}>
        <h2 id={id}>{title}</h2>
        {actions}
      </div>
      {isPadded ? <div className={css.panelBody}>{children}</div> : children}
    </section>
  );
};

interface TableProps {
  readonly label: string;
  readonly columns: readonly (string | { readonly name: string; readonly isNumber?: boolean })[];
  readonly children: ReactNode;
}

/** Describes a column of numbers, which are aligned at their end. */
export const numberColumn = (name: string) => ({ name, isNumber: true });

export const Table = ({ label, columns, children }: TableProps) => (
  <div className={css.tableBox} tabIndex={0} role="region" aria-label={label}>
    <table className={css.table}>
      <thead>
        <tr>
          {columns.map((column) => {
            const { name, isNumber = false } = typeof column === 'string' ? { name: column } : column;
            return (
              <th key={name} scope="col" data-end={isNumber ? '' : undefined}>
                {name}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ReactNode }) => (
  <div className={css.empty}>
    <strong>{title}</strong>
    {children}
  </div>
);

/** Tells whether a read was refused because it has no past. */
const hasNoPast = ({ code, message }: ReadProblem): boolean =>
  code === 'GATEWAY.INVALID_QUERY' && message.includes('"at"');

/** Shows why a read or an action failed, and what to do. */
export const ProblemBox = ({ problem, retry }: { problem: ReadProblem; retry?: () => void }) =>
  hasNoPast(problem) ? (
    <Empty title="This part has no past view">
      <p>The gateway answers this read only for the present. Go back to live to see it.</p>
    </Empty>
  ) : (
    <div className={css.problem} role="alert">
      <Icon name="warning" />
      <p>
        {problem.message} {problem.code && <code className={css.mono}>{problem.code}</code>}
      </p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );

export const Loading = ({ what }: { readonly what: string }) => (
  <p className={css.loading} aria-busy="true">
    Loading {what} …
  </p>
);

const TICK_MS = 5_000;
const now = createStore(Date.now());
setInterval(() => now.set(Date.now()), TICK_MS);

/** A time as an age that stays current, with the exact time and its zone in a tip. */
export const Time = ({ at, isExact = false }: { readonly at: string; readonly isExact?: boolean }) => {
  const current = useStore(now);
  const isWhole = useStore(showsWhole) || isExact;
  const exact = formatDate(at);
  return (
    <time dateTime={at} data-tip={isWhole ? undefined : exact}>
      {isWhole ? exact : formatAge(at, Math.max(current, new Date(at).getTime()))}
    </time>
  );
};

/** An id, shortened if it is a UUID, with the whole id in a tip. */
export const Id = ({ id, isWhole = false }: { readonly id: string; readonly isWhole?: boolean }) => {
  const text = useStore(showsWhole) || isWhole ? id : shortId(id);
  return (
    <code className={css.mono} data-tip={text === id ? undefined : id}>
      {text}
    </code>
  );
};

const COPY_ICONS = { ready: 'copy', done: 'check', failed: 'warning' } as const;

export const CopyButton = ({ text, label }: { readonly text: string; readonly label: string }) => {
  const [state, setState] = useState<keyof typeof COPY_ICONS>('ready');
  const copy = async (): Promise<void> => {
    // A page that came over HTTP from another machine has no clipboard.
    const isDone = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setState(isDone ? 'done' : 'failed');
    setTimeout(() => setState('ready'), 1_500);
  };
  const labels = { ready: label, done: 'Copied', failed: 'Not copied: the browser refused' };
  return <IconButton icon={COPY_ICONS[state]} label={labels[state]} onClick={() => void copy()} />;
};

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** Shows it at the side, over the whole height. */
  readonly isDrawer?: boolean;
}

/** A modal dialog. The browser keeps the focus in it, and returns it to the opener. */
export const Dialog = ({ title, onClose, children, isDrawer = false }: DialogProps) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before it leaves the page: only then its end returns the focus.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    shown?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => shown?.close();
  }, []);
  const cancel = (event: SyntheticEvent): void => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog
      ref={dialog}
      className={css.dialog}
      data-drawer={isDrawer ? '' : undefined}
      aria-labelledby={id}
      onCancel={cancel}
    >
      <div className={css.dialogHead}>
        <h2 id={id}>{title}</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </div>
      <div className={css.dialogBody}>{children}</div>
    </dialog>
  );
};

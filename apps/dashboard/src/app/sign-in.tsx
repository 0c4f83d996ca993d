import { useId, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { useAct } from '../data/act.js';
import { forgetDrafts } from '../data/drafts.js';
import { fetchJson, isSignedOut } from '../data/gateway.js';
import { identity, type Identity } from '../data/identity.js';
import { createStore, useStore } from '../data/store.js';
import { forgetReads } from '../data/query-cache.js';
import { toProblem, type Problem } from '../data/use-read.js';
import { useCheckedForm } from '../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../ui/ui.js';
import css from './shell.module.css';

const SESSION = '/api/v1/dashboard/session';

type Credential = { readonly key: string } | { readonly code: string; readonly replace?: boolean };

const signInWith = (credential: Credential): Promise<Identity> =>
  fetchJson<Identity>(SESSION, { method: 'POST', body: JSON.stringify(credential) });

const USED_LINK =
  'This link was used before, or it is older than five minutes. Run `npm start` for a new one, or use an API key.';

/** Problem of the one-time link with which the page was opened. */
const linkProblem = createStore<Problem | null>(null);

/** Link that would replace the session of this browser, and what the gateway says about it. */
const linkQuestion = createStore<{ readonly code: string; readonly message: string } | null>(null);

/**
 * Uses the one-time code that `npm start` prints as `/#sign-in=<code>`, and removes it at once. A
 * browser that is signed in stays so, also if the code was used before. A link of another caller asks
 * first: its author could otherwise watch what a user does in the wrong workspace.
 */
export const signInByLink = async (): Promise<void> => {
  const code = new URLSearchParams(location.hash.slice(1)).get('sign-in');
  if (code === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await signInWith({ code }).catch((error: unknown) => {
    const problem = toProblem(error);
    if (problem.code === 'GATEWAY.SESSION_EXISTS')
      return linkQuestion.set({ code, message: problem.message });
    linkProblem.set(problem.status === 401 ? { ...problem, message: USED_LINK } : problem);
  });
};

/** Asks whether a link may replace the session of this browser. It names both workspaces. */
export const LinkQuestion = () => {
  const question = useStore(linkQuestion);
  const { run, isBusy, problem } = useAct();
  if (!question) return null;
  const close = (): void => linkQuestion.set(null);
  const change = async (): Promise<void> => {
    await signInWith({ code: question.code, replace: true });
    location.reload();
  };
  return (
    <Dialog title="Change your session?" onClose={close}>
      <p>{question.message}</p>
      <p>Continue only with a link that you have made or asked for.</p>
      {problem && <ProblemBox problem={problem} />}
      <div className={ui.dialogFoot}>
        <Button onClick={close}>Stay in this session</Button>
        <Button look="danger" disabled={isBusy} onClick={() => run(change)}>
          Use the link
        </Button>
      </div>
    </Dialog>
  );
};

/** Replaces the session of this browser by a later one, and returns it. */
export const staySignedIn = (): Promise<Identity> => fetchJson<Identity>(SESSION, { method: 'PATCH' });

/** Ends the session of this browser. */
export const signOut = async (): Promise<void> => {
  await fetchJson(SESSION, { method: 'DELETE' });
  forgetDrafts();
  location.reload();
};

interface SignInFormProps {
  readonly children: ReactNode;
  readonly onDone: (identity: Identity) => void;
}

/** Asks for an API key. The key goes to the gateway once and is not stored in the browser. */
const SignInForm = ({ children, onDone }: SignInFormProps) => {
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      onDone(await signInWith({ key: key.trim() }));
    } catch (error) {
      const failure = toProblem(error);
      setBusy(false);
      setProblem(failure);
      if (failure.status === 401) refuse('key', 'The gateway does not accept this key.');
    }
  };
  const { errors, props: form, refuse } = useCheckedForm(() => void submit());
  return (
    <form className={css.signInCard} {...form}>
      {children}
      {problem && <ProblemBox problem={problem} />}
      <Field
        label="API key"
        hint="It is sent once to this gateway and is not stored in the browser."
        error={errors['key']}
      >
        {(props) => (
          <input
            {...props}
            name="key"
            type="password"
            autoComplete="current-password"
            required
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        )}
      </Field>
      <Button type="submit" look="primary" disabled={isBusy}>
        {isBusy ? 'Signing in …' : 'Sign in'}
      </Button>
    </form>
  );
};

/** Page of a browser without a session. */
export const SignIn = () => {
  const problem = useStore(linkProblem);
  const load = (): void => {
    forgetReads();
    location.reload();
  };
  return (
    <main className={css.signIn}>
      <SignInForm onDone={load}>
        <div>
          <h1>Sign in to Antiphon</h1>
          <p className={ui.muted}>
            With an API key of a workspace, or with the link that `npm start` prints.
          </p>
        </div>
        {problem && <ProblemBox problem={problem} />}
      </SignInForm>
    </main>
  );
};

/** True if a caller may see and do all that a page has: it then keeps its state. */
const canContinue = (before: Identity, next: Identity): boolean =>
  next.workspace === before.workspace &&
  next.agentId === before.agentId &&
  (before.permissions ?? []).every((permission) => next.permissions?.includes(permission));

interface SignInAgainProps {
  readonly onClose?: () => void;
  /** Asks for a key of another workspace, which a tab then shows from its overview on. */
  readonly isOther?: boolean;
}

const SAME = 'What you typed stays on the page if the key has the same rights in the same workspace.';
const OTHER = 'With a key of that workspace. Drafts of this one stay in this browser.';

/**
 * Asks for a key over the page, which keeps what was typed. A caller with fewer rights gets a new
 * page. Without `onClose` only a sign-in closes it, and the page behind it is covered.
 */
export const SignInAgain = ({ onClose, isOther = false }: SignInAgainProps) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    shown?.querySelector<HTMLElement>('input')?.focus();
    return () => shown?.close();
  }, []);
  const proceed = (next: Identity): void => {
    if (next.workspace !== identity.get().workspace) return location.assign('/');
    if (!canContinue(identity.get(), next)) return location.reload();
    identity.set(next);
    isSignedOut.set(false);
    onClose?.();
  };
  return (
    <dialog
      ref={dialog}
      className={css.signInAgain}
      data-covers={onClose ? undefined : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClose={() => {
        // Browsers let a second Escape close any dialog.
        if (!onClose && isSignedOut.get()) dialog.current?.showModal();
      }}
    >
      <SignInForm onDone={proceed}>
        <div>
          <h2 id={id}>
            {isOther ? 'Sign in to another workspace' : onClose ? 'Sign in again' : 'Your session has ended'}
          </h2>
          <p className={ui.muted}>{isOther ? OTHER : SAME}</p>
        </div>
        {onClose && <Button onClick={onClose}>Close</Button>}
      </SignInForm>
    </dialog>
  );
};

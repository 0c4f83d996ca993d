import { useState } from 'react';
import { fetchJson, isSignedOut } from '../data/gateway.js';
import { forgetReads, toProblem, type Problem } from '../data/use-read.js';
import { useCheckedForm } from '../ui/field-errors.js';
import { Button, css as ui, Field, ProblemBox } from '../ui/ui.js';
import css from './shell.module.css';

const SESSION = '/api/v1/dashboard/session';

const signInWith = (credential: { readonly key: string } | { readonly code: string }): Promise<unknown> =>
  fetchJson(SESSION, { method: 'POST', body: JSON.stringify(credential) });

/** Uses the one-time code that `npm start` prints as `/#sign-in=<code>`, and removes it at once. */
export const signInByLink = async (): Promise<void> => {
  const code = new URLSearchParams(location.hash.slice(1)).get('sign-in');
  if (code === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await signInWith({ code }).catch(() => isSignedOut.set(true));
};

/** Ends the session of this browser. */
export const signOut = async (): Promise<void> => {
  await fetchJson(SESSION, { method: 'DELETE' });
  location.reload();
};

/** Asks for an API key. The key goes to the gateway once and is not stored in the browser. */
export const SignIn = () => {
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await signInWith({ key: key.trim() });
      forgetReads();
      location.reload();
    } catch (error) {
      const failure = toProblem(error);
      setBusy(false);
      setProblem(failure);
      if (failure.status === 401) refuse('key', 'The gateway does not accept this key.');
    }
  };
  const { errors, props: form, refuse } = useCheckedForm(() => void submit());
  return (
    <main className={css.signIn}>
      <form className={css.signInCard} {...form}>
        <div>
          <h1>Sign in to Antiphon</h1>
          <p className={ui.muted}>
            With an API key of a workspace, or with the link that `npm start` prints.
          </p>
        </div>
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
    </main>
  );
};

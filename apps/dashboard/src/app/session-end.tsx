import { useEffect, useRef, useState } from 'react';
import { useAct } from '../data/act.js';
import { serverNow } from '../data/gateway.js';
import { identity, useIdentity } from '../data/identity.js';
import { formatDate } from '../ui/format.js';
import { Icon } from '../ui/icon.js';
import { Button } from '../ui/ui.js';
import { SignInAgain, staySignedIn } from './sign-in.js';
import css from './shell.module.css';

/** Time of the warning before the end of a session, ms. */
const WARN_MS = 5 * 60_000;
/** A machine may sleep, and its clock may be set. */
const MAX_WAIT_MS = 60_000;

const isSoon = (expiresAt: string): boolean => Date.parse(expiresAt) - serverNow() <= WARN_MS;

/** Returns the end of the session once it is near; null before, and without a session. */
const useNearEnd = (): string | null => {
  const { signedInBy, expiresAt } = useIdentity();
  const end = signedInBy === 'session' ? expiresAt : null;
  const [near, setNear] = useState<string | null>(null);
  useEffect(() => {
    if (end === null) return setNear(null);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const check = (): void => {
      setNear(isSoon(end) ? end : null);
      const wait = Date.parse(end) - serverNow() - WARN_MS;
      if (wait > 0) timer = setTimeout(check, Math.min(wait, MAX_WAIT_MS));
    };
    check();
    return () => clearTimeout(timer);
  }, [end]);
  return near;
};

const Warning = ({ end }: { readonly end: string }) => {
  const { run, problem } = useAct();
  const [isFinal, setFinal] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const stay = async (): Promise<void> => {
    const next = await staySignedIn();
    const isLast = next.expiresAt !== null && isSoon(next.expiresAt);
    // The button that has the focus leaves the page.
    if (!isLast && box.current?.contains(document.activeElement)) document.getElementById('main')?.focus();
    setFinal(isLast);
    identity.set(next);
  };
  return (
    <>
      <div ref={box} className={css.banner} data-tone="warn" role="alert">
        <Icon name="clock" />
        <span>
          {`You are signed in until ${formatDate(end)}. `}
          {isFinal && 'Its key ends then, so sign in with another one. '}
          {problem?.message}
        </span>
        {!isFinal && <Button onClick={() => run(stay)}>Stay signed in</Button>}
        <Button onClick={() => setAsked(true)}>Sign in again</Button>
      </div>
      {isAsked && <SignInAgain onClose={() => setAsked(false)} />}
    </>
  );
};

/** Warns before the session of this browser ends, and offers to stay signed in. */
export const SessionEnd = () => {
  const end = useNearEnd();
  return end === null ? null : <Warning end={end} />;
};

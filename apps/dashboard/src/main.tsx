import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Shell } from './app/shell.js';
import { LinkQuestion, SignIn, SignInAgain, signInByLink } from './app/sign-in.js';
import { startTheme } from './app/theme.js';
import { connection, isSignedOut } from './data/gateway.js';
import { readIdentity, useIdentity, watchSession } from './data/identity.js';
import { startLiveLog } from './data/live-log.js';
import { useStore } from './data/store.js';
import { findPage } from './pages/page-table.js';
import './ui/tokens.css';

/** A page that has been used stays behind a sign-in, with all that was typed. */
const Application = () => {
  const isOut = useStore(isSignedOut);
  const { permissions } = useIdentity();
  if (isOut && permissions === null) return <SignIn />;
  return (
    <>
      <Shell findPage={findPage} />
      {isOut ? <SignInAgain /> : <LinkQuestion />}
    </>
  );
};

/** Reloads once when a file of a former build is gone from the gateway. */
const RELOADED = 'antiphon.reloaded';
addEventListener('vite:preloadError', (event) => {
  // Without a connection the file may still be there, and a reload would lose the page.
  if (connection.get().state !== 'connected' || !navigator.onLine) return;
  if (sessionStorage.getItem(RELOADED) !== null) return;
  sessionStorage.setItem(RELOADED, '1');
  event.preventDefault();
  location.reload();
});

startTheme();
await signInByLink();
watchSession();
void readIdentity().catch(() => undefined);
startLiveLog();
const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <StrictMode>
      <Application />
    </StrictMode>,
  );

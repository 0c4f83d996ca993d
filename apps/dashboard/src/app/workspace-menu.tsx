import { useState } from 'react';
import { useIdentity } from '../data/identity.js';
import { useAct } from '../data/act.js';
import { Button, css as ui, Dialog, ProblemBox } from '../ui/ui.js';
import { SignInAgain, signOut } from './sign-in.js';

/** Names the workspace of this tab and its caller, and offers a sign-in to another workspace. */
export const WorkspaceMenu = ({ onClose }: { readonly onClose: () => void }) => {
  const { workspace, role, caller, signedInBy } = useIdentity();
  const act = useAct();
  const [isSigningIn, setSigningIn] = useState(false);
  if (isSigningIn) return <SignInAgain isOther onClose={onClose} />;
  return (
    <Dialog title="Workspace" onClose={onClose}>
      <dl className={ui.facts}>
        <dt>Workspace</dt>
        <dd>
          <bdi>{workspace}</bdi>
        </dd>
        <dt>Role</dt>
        <dd>{role}</dd>
        <dt>Signed in as</dt>
        <dd>
          <bdi>{caller}</bdi>
        </dd>
      </dl>
      <p>A key belongs to one workspace. To work in another one, sign in with a key of it.</p>
      {act.problem && <ProblemBox problem={act.problem} />}
      {signedInBy !== 'session' && (
        <p className={ui.muted}>This machine needs no sign-in for the workspace default.</p>
      )}
      <div className={ui.dialogFoot}>
        {signedInBy === 'session' && (
          <Button disabled={act.isBusy} onClick={() => act.run(signOut)}>
            Sign out
          </Button>
        )}
        <Button icon="key" onClick={() => setSigningIn(true)}>
          Sign in to another workspace
        </Button>
      </div>
    </Dialog>
  );
};

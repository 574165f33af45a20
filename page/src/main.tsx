// Starts the page: trades the code for a secret, follows events, and renders the shell.

import { render } from 'preact';
import { effect } from '@preact/signals';
import { followEvents } from './api/events';
import { openSession, session } from './api/session';
import { followAddress } from './router';
import { App } from './app';
import './style.css';

await openSession();
followAddress();
render(<App />, document.getElementById('page')!);
let isFollowing = false;
effect(() => {
  if (session.value !== 'open' || isFollowing) return;
  isFollowing = true;
  void followEvents();
});

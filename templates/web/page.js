// Updates the overview while the visitor looks at it. The page is complete without this script.
'use strict';
(() => {
  const EVERY_MS = 10_000;
  const region = document.querySelector('[data-live]');
  const stale = document.getElementById('stale');
  if (!region || !stale) return;
  let seen = new Date();

  async function renew() {
    // Do not replace the page under a visitor who has focus inside it or has selected text.
    const chosen = document.getSelection();
    const isBusy = region.contains(document.activeElement) || (chosen && !chosen.isCollapsed);
    if (document.hidden || isBusy) return;
    try {
      const answer = await fetch(window.location.href, { headers: { accept: 'text/html' }, redirect: 'error' });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      const fresh = new DOMParser().parseFromString(text, 'text/html').querySelector('[data-live]');
      if (!fresh) throw new Error('no overview');
      region.replaceChildren(...document.importNode(fresh, true).childNodes);
      seen = new Date();
      stale.hidden = true;
    } catch {
      const time = stale.querySelector('time');
      time.dateTime = seen.toISOString();
      time.textContent = seen.toLocaleTimeString();
      stale.hidden = false;
    }
  }

  setInterval(renew, EVERY_MS);
  document.addEventListener('visibilitychange', renew);
})();

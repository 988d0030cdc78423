// Opens pages of the daemon's port in a real browser, and prints its observations as JSON on standard output.
//
//   node port.mjs MODULES CHROMIUM BASE PATHS [SHOTS]
//
// MODULES is a folder with playwright-core in it, BASE the port's address, PATHS a JSON list, SHOTS a folder for pictures.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , modules, chromium, base, list, shots] = process.argv;
const { chromium: browserType } = await import(pathToFileURL(join(modules, 'playwright-core', 'index.mjs')).href);

// The time limit is long, because other tests may slow the machine down.
const TIMEOUT_MS = 240_000;
const paths = JSON.parse(list);
const looks = [
  { name: 'light', colorScheme: 'light', width: 1200 },
  { name: 'dark', colorScheme: 'dark', width: 1200 },
  { name: 'phone', colorScheme: 'light', width: 375 },
  { name: 'small phone', colorScheme: 'dark', width: 320 },
];

// Runs in the page: collects the content for readers and for screen readers.
function look() {
  const seen = (element) => element.getClientRects().length > 0;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const ids = new Set();
  const name = (element) => (element.getAttribute('aria-label') ?? element.textContent ?? '').trim();
  const labelled = (field) => field.type === 'hidden' || [...(field.labels ?? [])].some((label) => label.textContent.trim());
  const links = all('a').map((a) => a.getAttribute('href'));
  const handlers = all('*').filter((e) => [...e.attributes].some((a) => a.name.startsWith('on') || a.name === 'style'));
  // A table may be wider than the window only inside its own frame.
  const framed = (element) => element.closest('.scroll, .timeline, pre, nav, .skip, svg');
  const outside = all('main *').filter((element) => {
    const place = element.getBoundingClientRect();
    return seen(element) && !framed(element) && place.right > window.innerWidth + 1;
  });
  // A list must not scroll sideways if there is space.
  const wide = window.innerWidth < 1200 ? [] : all('.scroll:has(> table.wide-rows)').filter((frame) => frame.scrollWidth > frame.clientWidth + 1);
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parts(getComputedStyle(at).backgroundColor);
      if (alpha > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const texts = all('body *').filter((e) => seen(e) && !e.closest('svg, .skip, .null') && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
  const faint = texts.filter((element) => {
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05) < 4.5;
  });
  const says = (element) => `${element.tagName.toLowerCase()}.${element.getAttribute('class') ?? ''}: ${element.textContent.trim().slice(0, 40)}`;
  return {
    twice: all('[id]').map((e) => e.id).filter((id) => ids.has(id) || !ids.add(id)),
    inline: all('style, script:not([src]), iframe, object, embed').length + handlers.length,
    dangling: links.filter((link) => link.startsWith('#') && !document.getElementById(link.slice(1))),
    unnamed: all('a, button, svg[role]').filter((element) => seen(element) && !name(element)).map(says),
    unlabelled: all('input, select, textarea').filter((field) => !labelled(field)).map((field) => field.name),
    outside: outside.map(says),
    faint: faint.map(says),
    hidden: wide.map(says),
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    headings: all('h1').length,
    lang: document.documentElement.lang,
    title: document.title,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
  };
}

// Runs in the page: an upper limit of Tab presses. A date field alone needs four.
function tabsMax() {
  return 4 * document.querySelectorAll('a, button, input, select, textarea, summary, pre, .scroll, [tabindex]').length + 4;
}

// Runs in the page: the focused element, and whether its focus is visible.
function focused() {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const marks = [at, ...at.querySelectorAll('rect')].map((element) => getComputedStyle(element));
  const isSeen = marks.some((style) => style.outlineStyle !== 'none' || style.strokeWidth === '3px' || style.strokeWidth === '2px');
  return { text: (at.textContent ?? '').trim().slice(0, 40), tag: at.tagName.toLowerCase(), id: at.id, isSeen };
}

async function walk(page) {
  const most = await page.evaluate(tabsMax);
  const first = await (await page.keyboard.press('Tab'), page.evaluate(focused));
  const seen = { first: first?.text ?? '', unseen: [], trapped: true };
  await page.keyboard.press('Enter');
  seen.skips = await page.evaluate(() => document.activeElement?.id ?? '');
  for (let at = 0; at < most; at += 1) {
    await page.keyboard.press('Tab');
    const here = await page.evaluate(focused);
    if (!here) {
      seen.trapped = false;
      break;
    }
    if (!here.isSeen) seen.unseen.push(`${here.tag}: ${here.text}`);
    // After the last element, the browser starts again.
    if (here.text === seen.first) {
      seen.trapped = false;
      break;
    }
  }
  return seen;
}

const browser = await browserType.launch({
  executablePath: chromium,
  timeout: TIMEOUT_MS,
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
const result = { version: browser.version(), pages: [] };
if (shots) mkdirSync(shots, { recursive: true });
for (const { name, colorScheme, width } of looks) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  for (const [nth, path] of paths.entries()) {
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    const seen = { path, look: name, requests: [], console: [], dialogs: 0 };
    page.on('request', (request) => seen.requests.push(request.url()));
    page.on('console', (message) => seen.console.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => seen.console.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
    const answer = await page.goto(base + path, { waitUntil: 'load' });
    // The browser's own note about the refused page is expected.
    const refused = [400, 404].find((status) => status === answer.status());
    if (refused) seen.console = seen.console.filter((line) => !line.includes(`${refused}`));
    Object.assign(seen, await page.evaluate(look));
    seen.foreign = seen.requests.filter((request) => !request.startsWith(`${base}/`));
    if (shots) await page.screenshot({ path: join(shots, `${nth}-${name.replace(' ', '-')}.png`), fullPage: true });
    // The order is the same in every colour scheme.
    Object.assign(seen, await walk(page));
    result.pages.push(seen);
    await page.close();
  }
  await context.close();
}
await browser.close();
process.stdout.write(`${JSON.stringify(result)}\n`);

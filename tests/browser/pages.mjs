// Opens every page of a pack in a real browser, and prints its observations as JSON on standard output.
//
//   node pages.mjs MODULES CHROMIUM PACK [SHOTS]
//
// MODULES is a folder with playwright-core in it, PACK a pack's folder, SHOTS a folder for pictures of the first page.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , modules, chromium, pack, shots] = process.argv;
const { chromium: browserType } = await import(pathToFileURL(join(modules, 'playwright-core', 'index.mjs')).href);

// The time limit is long, because other tests may slow the machine down.
const TIMEOUT_MS = 240_000;
const looks = [
  { name: 'light', colorScheme: 'light', width: 1200 },
  { name: 'dark', colorScheme: 'dark', width: 1200 },
  { name: 'phone', colorScheme: 'light', width: 375 },
  { name: 'small phone', colorScheme: 'dark', width: 320 },
];
const reports = readdirSync(join(pack, 'reports')).filter((name) => name.endsWith('.html')).map((name) => `reports/${name}`);

// Runs in the page: collects the content that a reader sees.
function look() {
  const seen = (element) => element.getClientRects().length > 0;
  const charts = [...document.querySelectorAll('svg.chart')].filter(seen).map((svg) => {
    const box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll('rect, circle, path, line')].filter((mark) => !mark.closest('defs'));
    const outside = [...svg.querySelectorAll('text')].filter((text) => {
      const place = text.getBoundingClientRect();
      return place.width > 0 && (place.left < box.left - 8 || place.right > box.right + 8);
    });
    const drawn = marks.filter((mark) => {
      const place = mark.getBoundingClientRect();
      return place.width > 0 || place.height > 0;
    });
    return {
      width: box.width,
      height: box.height,
      drawn: drawn.length,
      label: svg.getAttribute('aria-label') ?? '',
      outside: outside.map((text) => text.textContent),
    };
  });
  const ids = new Set();
  const twice = [...document.querySelectorAll('[id]')].map((e) => e.id).filter((id) => ids.has(id) || !ids.add(id));
  const active = 'script, img, iframe, object, embed, link, form, base, input, video, audio, style ~ style';
  const handlers = [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => a.name.startsWith('on')));
  const links = [...document.querySelectorAll('a')].map((a) => a.getAttribute('href'));
  return {
    charts,
    twice,
    active: document.querySelectorAll(active).length + handlers.length,
    links: links.filter((link) => !link.startsWith('#')),
    dangling: links.filter((link) => link.startsWith('#') && !document.getElementById(link.slice(1))),
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    text: document.body.innerText.length,
  };
}

// Runs in the page: finds tables that would lose columns on paper as wide as the window.
function cut(isLandscape) {
  const tables = [...document.querySelectorAll('table')].filter((table) => Boolean(table.closest('.report, .landscape')) === isLandscape);
  const beyond = tables.filter((table) => table.getBoundingClientRect().right > window.innerWidth + 1);
  return beyond.map((table) => table.parentElement.getAttribute('aria-label') ?? table.textContent.slice(0, 40));
}

// The size of A4 without margins, in pixels.
const PAPER = [{ isLandscape: true, width: 1031 }, { isLandscape: false, width: 702 }];

async function printed(page) {
  const height = 900;
  const lost = [];
  await page.emulateMedia({ media: 'print' });
  for (const { isLandscape, width } of PAPER) {
    await page.setViewportSize({ width, height });
    lost.push(...(await page.evaluate(cut, isLandscape)));
  }
  return lost;
}

const browser = await browserType.launch({
  executablePath: chromium,
  timeout: TIMEOUT_MS,
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
const result = { version: browser.version(), pages: [] };
for (const { name, colorScheme, width } of looks) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  for (const path of ['index.html', ...reports]) {
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    const url = pathToFileURL(resolve(pack, path)).href;
    const seen = { path, look: name, requests: [], console: [], dialogs: 0 };
    page.on('request', (request) => seen.requests.push(request.url()));
    page.on('console', (message) => seen.console.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => seen.console.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
    await page.goto(url, { waitUntil: 'load' });
    Object.assign(seen, await page.evaluate(look));
    seen.foreign = seen.requests.filter((request) => request !== url);
    if (path === 'index.html') {
      await page.keyboard.press('Tab');
      seen.focus = await page.evaluate(() => document.activeElement?.className ?? '');
      if (shots) await page.screenshot({ path: join(shots, `${name.replace(' ', '-')}.png`), fullPage: true });
      if (name === 'dark') {
        const pdf = await page.pdf({ preferCSSPageSize: true, ...(shots ? { path: join(shots, 'print.pdf') } : {}) });
        seen.pdf = { bytes: pdf.length, head: pdf.subarray(0, 5).toString(), pages: pdf.toString('latin1').split('/Type /Page\n').length - 1 };
      }
    }
    // Paper looks the same in every colour scheme.
    if (name === 'light') seen.lost = await printed(page);
    result.pages.push(seen);
    await page.close();
  }
  await context.close();
}
await browser.close();
process.stdout.write(`${JSON.stringify(result)}\n`);

// Takes a light and a dark picture of one address.
//
//   node screenshots.mjs MODULES CHROMIUM ADDRESS NAME FOLDER HEIGHT
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , modules, chromium, address, name, folder, height] = process.argv;
const { chromium: browserType } = await import(pathToFileURL(join(modules, 'playwright-core', 'index.mjs')).href);
const browser = await browserType.launch({ executablePath: chromium, args: ['--no-sandbox'] });
for (const colorScheme of ['light', 'dark']) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1120, height: Number(height) } });
  const page = await context.newPage();
  await page.goto(address, { waitUntil: 'load' });
  await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
  await context.close();
}
await browser.close();

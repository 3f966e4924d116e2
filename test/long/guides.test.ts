import { expect, test } from 'vitest'
import { GUIDES, compareShown, guideBlocks, runGuide } from '../support/guides/guide.ts'
import { findTool } from '../support/tools.ts'

const missing = ['curl', 'diff', 'unzip'].filter((name) => findTool(name) === null)
const note = missing.length > 0 ? ` (skipped: there is no ${missing.join(', ')})` : ''

test.skipIf(missing.length > 0).for(GUIDES)(
  `the commands of $page run as they are written, and say what the page shows${note}`,
  async (guide) => {
    const runs = await runGuide(guide)
    const failed = runs.filter(({ code }) => code !== 0)
    expect(failed).toEqual([])
    const others = runs.flatMap(({ at, shown, out }) => {
      const difference = shown === null ? null : compareShown(shown, out)
      return difference === null ? [] : [{ at, ...difference }]
    })
    expect(others).toEqual([])
    expect(runs.length).toBe(guideBlocks(guide.page).filter(({ notRun }) => notRun === null).length)
    expect(runs.length).toBeGreaterThan(0)
  },
)

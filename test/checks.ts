import { spawn } from 'node:child_process'

/**
 * `npm test`: types and the lint rules that need none, two at a time, then the tests, and not beside them, so that no two
 * that need much memory meet. The rules that need types and the format are left to `npm run lint`, which CI runs too. All
 * checks are run, and each that fails is named; the tests run when none did. The source takes as long as all else.
 */
const CHECKS = [['lint:fast src'], ['types', 'lint:fast --ignore-pattern src']] as const

/** Runs a script of package.json, and writes what it said once it has ended. Resolves with whether it passed. */
function check(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const [script = '', ...more] = name.split(' ')
    const args = ['run', '--silent', script, '--', ...more]
    const child = spawn('npm', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    const said: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => said.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => said.push(chunk))
    child.once('error', (error) => said.push(Buffer.from(`${error.message}\n`)))
    child.once('close', (code) => {
      process.stdout.write(`npm run ${name}: ${code === 0 ? 'passed' : 'failed'}\n`)
      if (code !== 0) process.stdout.write(Buffer.concat(said))
      resolve(code === 0)
    })
  })
}

/** Runs checks after each other. Resolves with the names of those that failed. */
async function failedOf(names: readonly string[]): Promise<string[]> {
  const failed: string[] = []
  for (const name of names) if (!(await check(name))) failed.push(name)
  return failed
}

const failed = (await Promise.all(CHECKS.map(failedOf))).flat()
if (failed.length > 0) {
  process.stderr.write(`failed: ${failed.join(', ')}; the tests were not run\n`)
  process.exitCode = 1
} else {
  const args = ['run', '--silent', 'test:fast', '--', ...process.argv.slice(2)]
  const tests = spawn('npm', args, { stdio: 'inherit' })
  tests.once('error', (error) => process.stderr.write(`${error.message}\n`))
  tests.once('close', (code) => (process.exitCode = code ?? 1))
}

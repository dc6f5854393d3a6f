// A writer that takes the lock as Leslie's program does (docs/design/formats/leslie.md#locking): mkdir, stale after ten
// seconds, six attempts. It adds to the number in a file COUNT times.
const fs = require("fs");
const [file, count] = [process.argv[2], Number(process.argv[3])];
const lock = file + ".lock";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function acquire() {
  for (const wait of [100, 200, 400, 800, 1000, null]) {
    try {
      fs.mkdirSync(lock);
      // Once a process, the time is that of the next full second and five milliseconds.
      const time = Math.ceil(Date.now() / 1000) + 0.005;
      fs.utimesSync(lock, time, time);
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (wait === null) break;
    await sleep(wait);
  }
  throw new Error("T501");
}

(async () => {
  for (let done = 0; done < count; ) {
    try {
      await acquire();
    } catch (error) {
      if (error.message !== "T501") throw error;
      continue;
    }
    const value = Number(fs.readFileSync(file, "utf-8"));
    await sleep(2);
    fs.writeFileSync(file + ".tmp", String(value + 1));
    fs.renameSync(file + ".tmp", file);
    fs.rmdirSync(lock);
    done += 1;
  }
})();

// Takes the secret of a sign-in link out of the address's fragment (which no
// browser sends to a server), forgets it, and exchanges it for a session.
"use strict";

const chinese = (navigator.language || "").toLowerCase().startsWith("zh");
const text = chinese
  ? {
      none: "请使用服务器启动时打印的登录链接打开此页面。",
      bad: "此登录链接已失效。请获取新的登录链接。",
      failed: "无法连接服务器。请检查服务器是否正在运行，然后重新打开登录链接。",
      working: "正在登录…",
    }
  : {
      none: "Open this page with the sign-in link that the server printed.",
      bad: "This sign-in link is not valid any more. Ask for a new one.",
      failed: "The server cannot be reached. Check that it runs, then open the sign-in link again.",
      working: "Signing in…",
    };
const status = document.getElementById("status");
if (chinese) document.documentElement.lang = "zh";

async function signIn() {
  const secret = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (!secret) {
    status.textContent = text.none;
    return;
  }
  status.textContent = text.working;
  try {
    const answer = await fetch("/api/sign-in", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret }),
    });
    if (!answer.ok) {
      status.textContent = answer.status < 500 ? text.bad : text.failed;
      return;
    }
    location.replace((await answer.json()).page);
  } catch {
    status.textContent = text.failed;
  }
}

signIn();
window.addEventListener("hashchange", signIn);
